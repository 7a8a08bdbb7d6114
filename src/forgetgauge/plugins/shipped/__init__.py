"""What forgetgauge brings itself, one table a sort: name, where its code is, and one-line facts."""
