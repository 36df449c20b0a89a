"""Prepared shards are fed to a training as batches, in an order that can be resumed."""
