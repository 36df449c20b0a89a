"""From text to a score that one can trust: metrics with intervals, comparisons, and where a system is weak."""
