"""The game on a user's own models: their outputs come in as one file, the same Result comes out. No torch here."""

from forgetgauge.auditing.draw import make_draw
from forgetgauge.auditing.entry import audit
from forgetgauge.auditing.evals import write_from_evals
from forgetgauge.auditing.export import write_audit_file
from forgetgauge.auditing.one_model import audit_one_model
from forgetgauge.auditing.swap_pairs import audit_file

__all__ = ["audit", "audit_file", "audit_one_model", "make_draw", "write_audit_file", "write_from_evals"]
