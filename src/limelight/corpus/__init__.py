"""Pairs to batches: read, clean, count, shard, feed."""
