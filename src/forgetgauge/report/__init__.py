"""A `Result` as people see it: in a terminal, and as one HTML file. No torch here."""
