"""Each format of documents has a file here, beside those that several formats share."""
