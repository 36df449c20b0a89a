"""A trace is drawn as SVG, as a heat map, as a ribbon and in a terminal."""
