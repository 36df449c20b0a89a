"""TMX and XLIFF are read as streams."""
