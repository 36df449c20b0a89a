"""Omissions are source words that nothing in the translation came from; additions are words of the translation that came from nothing.

    E[s, t] = log p(t) - log p(t, word s hidden),    omission(s): max_t E[s, t] < NOTHING,    addition(t): max_s E[s, t] < NOTHING

over words with a letter or digit in them, t by its pieces (after Vamvas and Sennrich 2022, who take words out of the text). One pass for
each source word, in batches.
"""

from collections.abc import Sequence

from limelight.inspection.analysis.varied_pass import VariedPass
from limelight.inspection.causes import Unmatched
from limelight.inspection.trace import SourceToken, TargetToken

NOTHING = 0.3  # natural log-probability


def find_unmatched(passes: VariedPass, source: Sequence[SourceToken], target: Sequence[TargetToken], given: int) -> list[Unmatched]:
    """`passes` wants every piece of the translation; its first `given` were never a choice."""
    asked = [(word, pieces) for word, pieces in words_of(source) if set(pieces) <= set(passes.seen)]
    own_T, *gone = passes.without([(), *(pieces for _, pieces in asked)]).cpu()
    effects = [own_T - gone_T for gone_T in gone]
    found = [Unmatched("omission", *word, float(effect_T.max())) for word, effect_T in zip(asked, effects, strict=True)]
    for word, pieces in words_of(target, given):
        largest = max((float(effect_T[list(pieces)].max()) for effect_T in effects), default=0.0)
        found.append(Unmatched("addition", word, pieces, largest))
    return [each for each in found if each.effect < NOTHING]


def words_of(tokens: Sequence[SourceToken] | Sequence[TargetToken], first: int = 0) -> list[tuple[str, tuple[int, ...]]]:
    """Words with their pieces, without marks and punctuation."""
    pieces: dict[int, list[int]] = {}
    for at, token in enumerate(tokens):
        if token.word is not None and at >= first:
            pieces.setdefault(token.word, []).append(at)
    words = [(spell(tokens, some), tuple(some)) for some in pieces.values()]
    return [(word, some) for word, some in words if any(sign.isalnum() for sign in word)]


def spell(tokens: Sequence[SourceToken] | Sequence[TargetToken], some: Sequence[int]) -> str:
    return "".join(tokens[at].piece for at in some).strip("\u2581")
