"""The verb `inspect` looks into the translation of one sentence, and into the checkpoints of a run."""
