"""The tutorials import a model of others; the tests of interop make such models."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "interop"))
