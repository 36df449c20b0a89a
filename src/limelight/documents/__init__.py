"""Files in, files out: text in its document is translated, and everything else stays as it is, to the byte."""
