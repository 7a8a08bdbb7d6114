"""A digest of the user's code, which stands for it in keys: an edit is another key, and nothing else is."""

from forgetgauge.code.digest import Code, code_digest, code_of, files_named, folders_named

__all__ = ["Code", "code_digest", "code_of", "files_named", "folders_named"]
