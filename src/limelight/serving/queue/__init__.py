"""Texts of many requests become batches, in a fair order and within their deadlines."""
