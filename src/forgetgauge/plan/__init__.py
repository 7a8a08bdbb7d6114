"""From a run file to jobs: what will be done, in full, before anything is done. Knows no algorithm by name."""
