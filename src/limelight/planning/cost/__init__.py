"""Parameters, operations, bytes and messages follow from the shape of a model."""
