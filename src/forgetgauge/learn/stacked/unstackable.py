"""What is said of a model that no stack can stand in for."""

from __future__ import annotations


class Unstackable(Exception):
    """Why a model has no twin."""
