"""Where finished work is kept: content-addressed artefacts, a ledger of job states, one-file export and import."""
