"""Ranks are the processes of one run: here they are started, exchange values, are watched and ended."""
