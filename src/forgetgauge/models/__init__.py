"""Architectures, and how their last layer is found."""
