"""The one place of the version number, besides pyproject.toml (a test compares them)."""

VERSION = "0.1.0"
