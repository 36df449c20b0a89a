"""Parallel text is read, cleaned, counted, cut into shards and fed to a training as batches."""
