"""Where each piece of a translation looked becomes links between words, and places for tags."""
