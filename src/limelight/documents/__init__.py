"""Text is translated inside its document, and everything else stays as it is, to the byte."""
