"""A prepared corpus is described on an HTML page, with tables and pictures."""
