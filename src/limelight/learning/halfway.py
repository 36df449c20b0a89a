"""A version that learnt and forgets is taken back half of the way: its weights become the mean of those before and after.

Along that line a translator loses what it has learnt about as fast as it gets back what it forgot (Wortsman et al. 2022), but what it
forgot mostly comes back first. Its confidence stays as it was calibrated for the whole way.
"""

from pathlib import Path

from limelight.bundle.bundle import edit_copy, read
from limelight.bundle.layout import EXPORT, WEIGHTS
from limelight.bundle.weights import save_weights
from limelight.files import sha256_of, write_whole

MARK = "halfway"  # in the folder of an attempt: its weights are a mean, if they are not those whose digest it holds


def take_back(before: Path, after: Path, attempt: Path) -> bool:
    """`after` becomes the mean of both, once; False where it is one, or has weights of another shape."""
    old, new = read(before), read(after)
    whole = sha256_of(new.folder / WEIGHTS)
    if (attempt / MARK).exists() and (attempt / MARK).read_bytes() != whole.encode():
        return False
    if old.settings.model.changed(dropout=0.0) != new.settings.model.changed(dropout=0.0):
        return False
    theirs, ours = old.weights(), new.weights()
    write_whole(attempt / MARK, whole.encode())  # before they are gone: who is killed here goes half of the way once, and not twice
    with edit_copy(new, left_out=EXPORT.rstrip("/")) as beside:
        (beside / WEIGHTS).unlink()
        save_weights(beside, {name: (theirs[name] + weight) / 2 for name, weight in ours.items()})
    return True
