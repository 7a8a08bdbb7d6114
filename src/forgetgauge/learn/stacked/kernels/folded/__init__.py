"""Convolutions of many models at once with their batch norms folded in: CUDA source, compiled where it runs."""
