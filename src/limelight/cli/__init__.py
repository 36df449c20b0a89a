"""Each verb of `limelight` has a file or a folder here. It is the only room that prints."""
