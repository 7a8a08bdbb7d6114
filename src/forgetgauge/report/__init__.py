"""The result: its versioned record, how it is assembled from artefacts, and how it is shown. No torch here."""
