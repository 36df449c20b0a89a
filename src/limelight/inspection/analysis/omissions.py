"""Omissions are source words that nothing in the translation came from; additions are words of the translation that came from nothing.

See docs/inspect.md.
"""

from collections.abc import Sequence

from limelight.inspection.analysis.varied_pass import VariedPass
from limelight.inspection.causes import Unmatched
from limelight.inspection.trace import SourceToken, TargetToken

OMITTED, ADDED = -1.8, -7.5  # natural log-probability


def find_unmatched(passes: VariedPass, source: Sequence[SourceToken], target: Sequence[TargetToken], given: int) -> list[Unmatched]:
    """`passes` wants every piece of the translation; its first `given` were never a choice."""
    asked = [(word, pieces) for word, pieces in words_of(source) if set(pieces) <= set(passes.seen)]
    every = [piece for _, pieces in asked for piece in pieces]
    own_T, *gone, alone_T = passes.without([(), *(pieces for _, pieces in asked), every]).cpu()[:, given:]
    found = [Unmatched("omission", *word, float((own_T - gone_T).sum())) for word, gone_T in zip(asked, gone, strict=True)]
    found = [each for each in found if each.effect < OMITTED]
    for word, pieces in words_of(target, given):
        rows = [piece - given for piece in pieces]
        effect = float(own_T[rows].min() + (own_T - alone_T)[rows].sum())
        found += [Unmatched("addition", word, pieces, effect)] * (effect < ADDED)
    return found


def words_of(tokens: Sequence[SourceToken | TargetToken], first: int = 0) -> list[tuple[str, tuple[int, ...]]]:
    """Words with their pieces, without marks and punctuation."""
    pieces: dict[int, list[int]] = {}
    for at, token in enumerate(tokens):
        if token.word is not None and at >= first:
            pieces.setdefault(token.word, []).append(at)
    words = [(spell(tokens, some), tuple(some)) for some in pieces.values()]
    return [(word, some) for word, some in words if any(sign.isalnum() for sign in word)]


def spell(tokens: Sequence[SourceToken | TargetToken], some: Sequence[int]) -> str:
    return "".join(tokens[at].piece for at in some).strip("\u2581")
