"""From a plan to records, and from records to verdicts."""
