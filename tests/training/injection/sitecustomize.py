"""Python runs this file at its start when the folder is on PYTHONPATH, as `inject_fault.fault_environment` puts it there."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import inject_fault

inject_fault.install()
