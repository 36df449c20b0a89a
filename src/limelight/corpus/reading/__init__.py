"""One file per format: bytes anywhere -> rows with their place and their fault. `corpus.readers` is the door."""
