"""Bundles are exported to CTranslate2, and its models are imported."""
