"""The verb `translate` translates lines and documents, and writes lists to review."""
