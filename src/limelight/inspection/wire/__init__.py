"""A trace travels as JSON, with its arrays packed in base64 or as lists."""
