"""The options of `limelight inspect` that ask why a word is there become lines, values for --json and a picture."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from limelight.cli.inspect.lines import InspectOutput
from limelight.errors import ConfigError

if TYPE_CHECKING:
    from limelight.inspection.causes import PatchMap
    from limelight.inspection.drawing.svg import Picture
    from limelight.inspection.tracing.live_trace import LiveTrace

STRONGEST = 8  # places of a patch map that are told


@dataclass(frozen=True)
class CauseOptions:
    why: str | None
    instead_of: str | None
    method: str
    check: bool
    patch_from: str | None
    places: str

    def check_sense(self) -> dict[str, bool]:
        if self.why is None and (self.instead_of is not None or self.patch_from is not None):
            raise ConfigError("--instead-of and --patch-from belong to a word; name it with --why")
        from limelight.inspection.causes import METHODS, PLACES

        choices = [("method", self.method, METHODS), ("places", self.places, PLACES)]
        problems = [f"--{name} {given}: there are {', '.join(known)}" for name, given, known in choices if given not in known]
        if problems:
            raise ConfigError("these are not known:", problems)
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
        word = int(self.why) if self.why.isdecimal() and self.why not in trace.target.text.split() else self.why
        why = trace.why(word, self.method, self.instead_of)  # type: ignore[arg-type]
        found.lines += ["", *str(why).split("\n")]
        found.values["why"] = asdict(why)
        if self.patch_from is None:
            return None
        patched = trace.patch(trace_other(self.patch_from), word, self.places)  # type: ignore[arg-type]
        found.lines += ["", *_strongest(patched)]
        found.values["patch"] = {**asdict(patched), "change": patched.change.tolist()}
        return patch_picture(trace, patched)


def _strongest(patched: "PatchMap") -> list[str]:
    lines = [f"patched from “{patched.other}”, the log-probability {patched.logp:+.2f} of {patched.word} changes most by"]
    for number in abs(patched.change).argsort(axis=None)[::-1][:STRONGEST]:
        row, column = divmod(int(number), len(patched.columns))
        lines.append(f"  {patched.rows[row]:<12} {patched.columns[column]:<12} {patched.change[row, column]:+.2f}")
    return lines
