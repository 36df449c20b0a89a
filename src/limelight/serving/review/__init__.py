"""A document is reviewed segment by segment: the server cuts it, translates it and puts the texts back, and keeps nothing of it."""
