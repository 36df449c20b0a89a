"""The translator as a service: two public dialects, one of our own, and a page."""
