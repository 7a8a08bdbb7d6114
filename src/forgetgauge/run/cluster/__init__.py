"""A run on many machines by Ray: each assignment is one Ray task; the store and the ledger stay with who started it."""
