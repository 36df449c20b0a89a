"""The first array that pyarrow makes of Python's objects imports pandas, which takes seconds: no test is charged for it."""

import pyarrow as pa

pa.array([""])
