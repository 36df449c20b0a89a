"""A trace is saved as files, or as one page that opens anywhere."""
