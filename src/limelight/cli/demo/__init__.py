"""The verb `demo` trains a translator of number words in about two minutes and opens the lighting desk on it."""
