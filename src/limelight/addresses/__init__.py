"""Addresses such as s3://models/en-de stand where a folder may: objects, working copies and snapshots of folders."""
