"""The lighting desk serves traces, exports, importance of heads and probes."""
