"""Each reader turns the bytes of one file format into rows with their place and their fault. `corpus.readers` calls the one that fits."""
