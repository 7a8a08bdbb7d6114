"""Which shipped methods are for which models."""

from forgetgauge import plugins

FOR_RECORDS = {name for name in plugins.unlearners.entries if hasattr(plugins.unlearners.load(name), "task")}
"""Those for language models alone, which have tests of their own in tests/language."""
FOR_ALL = [name for name in plugins.unlearners.entries if name not in FOR_RECORDS]
