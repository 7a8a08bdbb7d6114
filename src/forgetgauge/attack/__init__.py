"""Adversaries: signals are computed once per model, then every attack is a pure function of them. No torch here."""
