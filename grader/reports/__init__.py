"""Reports: pure functions from what was graded to text, JSON, JUnit XML or Markdown."""
