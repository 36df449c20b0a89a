"""Words to ids and back, sampled segmentations, and which language a text is in."""
