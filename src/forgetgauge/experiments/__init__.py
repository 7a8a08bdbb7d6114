"""Experiments of the paper that are not one game's Q: each reads a run of the plan and the store another way."""
