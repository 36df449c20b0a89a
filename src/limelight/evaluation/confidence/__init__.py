"""Confidence is calibrated here and compared with what was right."""
