"""Translations are scored by BLEU, chrF, TER and COMET with their intervals, and two systems are compared."""
