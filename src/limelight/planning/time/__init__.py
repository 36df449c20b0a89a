"""Seconds follow from a cost and a machine, described or measured."""
