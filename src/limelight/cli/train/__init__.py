"""The verb `train` parses the command line, starts the ranks, and shows a run on a live screen."""
