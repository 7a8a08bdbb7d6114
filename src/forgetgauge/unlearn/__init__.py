"""Unlearners: one file for each method and its variants."""
