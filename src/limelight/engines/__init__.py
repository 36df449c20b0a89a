"""What runs a model. An engine takes ids and gives ids; text stays with the translator. One protocol: `engines.engine.Engine`."""
