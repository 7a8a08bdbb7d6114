"""The paper's tables and experiments as suites that can be run in slices, with its own numbers beside ours."""
