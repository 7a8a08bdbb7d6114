"""The game on a user's own models: their outputs come in as one file, the same Result comes out. No torch here."""

from forgetgauge.audit.draw import make_draw
from forgetgauge.audit.evals import write_from_evals
from forgetgauge.audit.export import write_audit_file
from forgetgauge.audit.one_model import audit_one_model
from forgetgauge.audit.playing import audit_file

__all__ = ["audit_file", "audit_one_model", "make_draw", "write_audit_file", "write_from_evals"]
