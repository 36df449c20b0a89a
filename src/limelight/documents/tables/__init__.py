"""Tables of texts, which programs and people keep by keys or by columns, have a file for each kind here."""
