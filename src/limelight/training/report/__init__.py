"""A run folder is read back here and written as a report in Markdown and HTML."""
