"""Tasks: what a model's output means. Labels, signals and utility are declared without torch; the loss loads it."""
