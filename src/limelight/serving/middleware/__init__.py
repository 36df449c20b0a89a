"""Each request passes through these layers before a route sees it."""
