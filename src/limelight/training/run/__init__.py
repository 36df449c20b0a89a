"""A run is assembled, led through its phases, logged and ended here."""
