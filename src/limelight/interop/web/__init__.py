"""Bundles are exported as a page that translates inside a browser, with parity proven in one."""
