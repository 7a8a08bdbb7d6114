"""Doing the jobs: what each kind does, which go together, in which processes, and what to do when one fails."""
