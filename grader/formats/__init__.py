"""Task files, and importers of other people's tasks, one file each."""
