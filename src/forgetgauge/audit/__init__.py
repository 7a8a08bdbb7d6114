"""The game on a user's own models: their outputs come in as one file, the same Result comes out. No torch here."""

from forgetgauge.audit.export import write_audit_file
from forgetgauge.audit.playing import audit_file

__all__ = ["audit_file", "write_audit_file"]
