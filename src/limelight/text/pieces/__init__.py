"""Words become subword pieces with ids, and ids become words again."""
