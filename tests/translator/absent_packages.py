"""What a program begins with to run as if torch, Polars and Arrow were not installed."""

ABSENT = """
import importlib.abc, importlib.util, sys
HEAVY = ("torch", "polars", "pyarrow")

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HEAVY:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in HEAVY else find(name, package)
"""
