"""The verb `evaluate` scores a translator or a translation and prints the result."""
