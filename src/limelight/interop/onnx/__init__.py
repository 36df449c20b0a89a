"""Bundles are exported to ONNX, with parity proven by ONNX Runtime."""
