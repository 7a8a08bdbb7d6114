"""The paper's tables as suites that can be run, in slices and on several machines, with its own numbers beside ours."""
