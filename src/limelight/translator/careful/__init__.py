"""A sentence whose placeholders or terms are lost is searched a second time, under constraints."""
