"""Unlearners: one file per method."""
