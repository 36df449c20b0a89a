"""The HTTP layer serves connections from first byte to last, and starts and drains the server."""
