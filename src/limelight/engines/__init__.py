"""Engines run a model: they take ids and give ids, and text stays with the translator. One protocol: `engines.engine.Engine`."""
