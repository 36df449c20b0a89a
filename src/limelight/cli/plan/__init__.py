"""The verb `plan` says what a run would cost, and why, as lines or as a page."""
