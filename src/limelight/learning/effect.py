"""The effect of learning is the difference in chrF between two versions, on corrections that were held out and on old text.

A version is kept only if it is better where it should be, which chance alone would hardly do, and not worse where it should not be.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from limelight.corpus.manifest import Split
from limelight.errors import DataError
from limelight.evaluation.config import EvaluateSettings, InferenceOptions
from limelight.evaluation.inputs import read_split
from limelight.evaluation.metrics.compare import Difference, compare
from limelight.evaluation.metrics.metrics import count
from limelight.evaluation.translating import TranslatedSet, translate_set
from limelight.training.recipe.replay import OldText

NEW, OLD = "corrections", "old text"
MOST_LOST = 0.3  # chrF on old text, also where so little is not significant: a small set proves nothing
MOST_PAIRS = 2_000  # of a set
HELD_OUT: tuple[Split, ...] = ("test", "valid")
TestSet = tuple[Sequence[str], Sequence[str]]


def find_old_test(folder: Path) -> TestSet:
    """The test set of the run that the translator came from, or else its validation set."""
    prepared = OldText(folder, None).prepared
    for place, split in ((prepared, split) for split in HELD_OUT if prepared is not None):
        with suppress(DataError):  # where there is none
            sources, references, _ = read_split(place, split)
            step = -(-len(sources) // MOST_PAIRS)
            return sources[::step], references[::step]
    raise DataError(
        f"{folder} has no text beside it to tell whether it forgets; name a test set of old text: --test old.en --test old.de "
        "(and text to go on with against forgetting: --replay-data)"
    )


def translate_sets(folder: Path, sets: Mapping[str, TestSet], running: InferenceOptions) -> TranslatedSet:
    return translate_set(folder, [source for given, _ in sets.values() for source in given], running=running)


def measure_effect(before: TranslatedSet, after: TranslatedSet, sets: Mapping[str, TestSet]) -> dict[str, Difference]:
    """Both are translations of all sets; a difference for each set, `system` is the version before."""
    made = before, after
    settings, found, begin = EvaluateSettings(metrics=("chrf",)), dict[str, Difference](), 0
    for name, (given, references) in sets.items():
        counts = [count("chrf", each.texts[begin:][: len(given)], [references], settings, each.languages[1]) for each in made]
        found[name] = compare(("before", "after"), counts[:1], counts[1:], settings)[0]
        begin += len(given)
    return found


def forgets(old: Difference) -> bool:
    return (old.significant and old.difference < 0) or old.difference < -MOST_LOST


def decide(effect: Mapping[str, Difference]) -> tuple[bool, str]:
    """Whether it is kept, and why."""
    new, old = effect[NEW], effect[OLD]
    if not (new.significant and new.difference > 0):
        return False, f"it is not surely better on corrections that were held out: {new.difference:+.1f} chrF, p = {new.p:.3f}"
    if forgets(old):
        return False, f"it forgets: {old.difference:+.2f} chrF on old text, p = {old.p:.3f}"
    return (
        True,
        f"better on corrections that were held out by {new.difference:.1f} chrF (p = {new.p:.3f}), {old.difference:+.1f} on old text",
    )
