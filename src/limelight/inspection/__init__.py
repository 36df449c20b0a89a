"""Inspection shows every stage of a translation by name, what changes when a head is dimmed, and what caused a word."""
