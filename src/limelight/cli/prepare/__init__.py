"""The verb `prepare` turns raw corpora into training data and a report."""
