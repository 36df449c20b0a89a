"""Checkpoints are written, verified and read back here, so that a run can go on from one."""
