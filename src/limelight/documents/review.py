"""`find_reasons` says why somebody should look at a translation of a document. PO and XLIFF say so in the file; every format does in a
list.

unsure        the confidence is below a threshold
unprotected   a placeholder, a tag or an address is lost
all others    warnings of the translator (numbers, loop, too_long ...) and of the document (apart, and what was left as it was)
"""

from collections.abc import Sequence

from limelight.decoding.guards import Notice
from limelight.documents.units import TranslatedUnit, UnitTranslation
from limelight.errors import ConfigError

# Below it more than four words in ten are expected to be others than a translator would have used (docs/confidence.md).
UNSURE_BELOW = 0.6
# These tell how a translation was made, and not that something is wrong with it.
HARMLESS = frozenset(("engine", "redecoded", "split"))


def check_threshold(unsure_below: float) -> None:
    if not 0 <= unsure_below <= 1:
        raise ConfigError(f"a confidence is between 0 and 1, and {unsure_below:g} is not; 1 marks every translation")


def find_reasons(
    results: Sequence[UnitTranslation], notices: Sequence[Notice], unsure_below: float
) -> tuple[Notice, ...]:
    """Why a text that these results were written for should be looked at; nothing where all is well."""
    reasons = [notice for notice in dict.fromkeys(notices) if notice.code not in HARMLESS]
    if not all(result.protected for result in results) and all(notice.code != "unprotected" for notice in reasons):
        reasons.append(Notice("unprotected", "something that must not be translated was lost"))
    confidence = min(result.confidence for result in results)
    if confidence < unsure_below or unsure_below == 1:
        reasons.append(Notice("unsure", f"its confidence is {confidence:.2f}, and {unsure_below:g} was asked for"))
    return tuple(reasons)


def sort_worst_first(units: Sequence[TranslatedUnit]) -> list[TranslatedUnit]:
    """Those with a reason: first what has no translation, then what has a fault, then by confidence."""

    def rank(each: TranslatedUnit) -> tuple[bool, bool, float]:
        has_fault = any(reason.code != "unsure" for reason in each.reasons)
        return each.confidence is not None, not has_fault, each.confidence or 0.0

    return sorted((each for each in units if each.reasons), key=rank)
