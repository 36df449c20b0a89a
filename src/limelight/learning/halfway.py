"""A version that learnt and forgets is taken back half of the way: its weights become the mean of those before and after.

Along that line a translator loses what it has learnt about as fast as it gets back what it forgot (Wortsman et al. 2022), but what it
forgot mostly comes back first. Its confidence stays as it was calibrated for the whole way.
"""

from pathlib import Path

from limelight.bundle.bundle import edit_copy, read
from limelight.bundle.layout import EXPORT, WEIGHTS
from limelight.bundle.weights import save_weights

MARK = "halfway"  # in the folder of an attempt: its weights are a mean already


def take_back(before: Path, after: Path, attempt: Path) -> bool:
    """`after` becomes the mean of both, once; False where it is one, or has weights of another shape."""
    if (attempt / MARK).exists():
        return False
    old, new = read(before), read(after)
    if old.settings.model.changed(dropout=0.0) != new.settings.model.changed(dropout=0.0):
        return False
    theirs, ours = old.weights(), new.weights()
    with edit_copy(new, left_out=EXPORT.rstrip("/")) as beside:
        (beside / WEIGHTS).unlink()
        save_weights(beside, {name: (theirs[name] + weight) / 2 for name, weight in ours.items()})
    (attempt / MARK).touch()
    return True
