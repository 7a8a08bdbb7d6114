"""Data sets as tensors, labels and a digest."""
