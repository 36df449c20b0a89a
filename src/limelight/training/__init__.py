"""What a run needs beside the model: so far the master copies of bfloat16 weights."""
