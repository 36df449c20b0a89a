"""The options of `limelight inspect` that ask why a word is there become lines, values for --json and a picture."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from limelight.cli.inspect.lines import InspectOutput
from limelight.errors import ConfigError

if TYPE_CHECKING:
    from limelight.inspection.causes import PatchMap
    from limelight.inspection.drawing.svg import Picture
    from limelight.inspection.tracing.live_trace import LiveTrace

STRONGEST = 8  # places of a patch map that are told


class MethodName(StrEnum):
    occlusion = "occlusion"
    value_zeroing = "value-zeroing"
    gradient = "gradient"
    integrated = "integrated"


class PlacesName(StrEnum):
    source = "source"
    target = "target"
    heads = "heads"


@dataclass(frozen=True)
class CauseOptions:
    """Cause options say which word is asked about, and how."""

    why: str | None = None
    instead_of: str | None = None
    method: MethodName = MethodName.occlusion
    check: bool = False
    patch_from: str | None = None
    places: PlacesName = PlacesName.source

    def check_sense(self) -> dict[str, bool]:
        """Which options need a sentence."""
        alone = [("--instead-of", self.instead_of), ("--patch-from", self.patch_from)]
        missing = [name for name, given in alone if given is not None and self.why is None]
        if missing:
            raise ConfigError(f"{' and '.join(missing)} belongs to a word; name it with --why")
        return {"--why": self.why is not None, "--check": self.check}

    def find(self, trace: "LiveTrace", trace_other: "Callable[[str], LiveTrace]", found: InspectOutput) -> "Picture | None":
        """Add what was asked for to the output; return the picture of a patching."""
        from limelight.inspection.drawing.heatmaps import patch_picture

        if self.check:
            unmatched = trace.check()
            found.lines += ["", *(map(str, unmatched) if unmatched else ["every word of both sides came from the other"])]
            found.values["unmatched"] = [asdict(each) for each in unmatched]
        if self.why is None:
            return None
        word = int(self.why) if self.why.isdecimal() and self.why not in trace.target.text else self.why
        why = trace.why(word, self.method.value, self.instead_of)
        found.lines += ["", *str(why).split("\n")]
        found.values["why"] = {**asdict(why), "source_share": why.source_share}
        if self.patch_from is None:
            return None
        patched = trace.patch(trace_other(self.patch_from), word, self.places.value)
        found.lines += ["", *_strongest(patched)]
        found.values["patch"] = {**asdict(patched), "change": patched.change.tolist()}
        return patch_picture(trace, patched)


def _strongest(patched: "PatchMap") -> list[str]:
    order = sorted(((float(value), at) for at, value in _cells(patched)), key=lambda each: abs(each[0]), reverse=True)
    lines = [f"patched from “{patched.other}”, the log-probability {patched.logp:+.2f} of {patched.word} changes most by"]
    return lines + [f"  {patched.rows[row]:<12} {patched.columns[column]:<12} {value:+.2f}" for value, (row, column) in order[:STRONGEST]]


def _cells(patched: "PatchMap") -> list[tuple[tuple[int, int], float]]:
    import numpy as np

    return [((row, column), value) for (row, column), value in np.ndenumerate(patched.change)]


NO_CAUSES = CauseOptions()
