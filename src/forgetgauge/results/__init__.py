"""From a finished run, or an audit, to a `Result`: every number that a report shows is made here."""
