"""A `TranslationPlan` has the sentences of texts, each with what must survive, and joins their translations.

A sentence is what is searched. A server, which has many texts at hand, may mix the sentences of all and join each text's own.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from limelight.decoding.config import Sampling, SearchSettings
from limelight.decoding.steps import IsOver, never
from limelight.errors import ConfigError, DataError, DeadlineError
from limelight.text.careful.glossary import Glossary
from limelight.translator.careful.protected import Keeper
from limelight.translator.careful.two_searches import CarefulRequest
from limelight.translator.parts import Cut, Cutter, join_parts
from limelight.translator.sentences import check_texts, many_each, one_each
from limelight.translator.translation import Translation

LEAST_CUT = 64  # pieces: a caller that asks for shorter translations wants them short, not in parts
GROWTH = 1.25  # pieces of a translation for one of its source, where the search has a limit


@dataclass(frozen=True)
class TranslationOptions:
    """Translation options say what is wanted beside the text."""

    align: bool = False
    guards: bool = True
    probabilities: bool = False


@dataclass(frozen=True)
class TranslationPlan:
    """A plan has in `asked` the sentences of all texts, one text after the other, and in `owner` the number of the text of each."""

    cuts: list[Cut]
    asked: list[CarefulRequest]
    owner: list[int]

    def join(self, made: Sequence[Translation]) -> list[Translation]:
        """Join the translations of all sentences to one for each text."""
        each = iter(made)
        return [join_parts(cut, [next(each) for _ in cut.parts]) for cut in self.cuts]

    def join_text(self, text: int, made: Sequence[Translation]) -> Translation:
        """One text, of the translations of its sentences."""
        return join_parts(self.cuts[text], made)

    def begins(self) -> list[int]:
        """Where the sentences of each text begin in `asked`."""
        return [0, *accumulate(len(cut.parts) for cut in self.cuts)][: len(self.cuts)]


class TranslationPlanner:
    def __init__(self, cutter: Cutter, keeper: Keeper) -> None:
        self.cutter, self.keeper = cutter, keeper

    def plan(
        self,
        texts: Sequence[str],
        settings: SearchSettings,
        prefixes: Sequence[str] | None,
        phrases: Sequence[Sequence[str]] | None,
        protect: bool,
        glossary: Glossary | Sequence[Glossary | None] | None,
        segment: bool | None,
        is_over: IsOver = never,
    ) -> TranslationPlan:
        given = check_texts(texts, "texts")
        glossaries = _one_each(glossary, len(given))
        begins, needed = one_each(prefixes, "prefixes", len(given)), many_each(phrases, len(given))
        longest = max(LEAST_CUT, round(settings.max_length / GROWTH))
        bound = [bool(begin or need) for begin, need in zip(begins, needed, strict=True)]
        cuts = []
        for at, text in enumerate(given):
            _check_time(is_over)
            whole = bound[at]
            cuts.append(self.cutter.cut(text, False if whole else segment, longest, parse=protect and not whole))
        owner = [at for at, cut in enumerate(cuts) for _ in cut.parts]
        asked = []
        for at, part in zip(owner, (part for cut in cuts for part in cut.parts), strict=True):
            _check_time(is_over)
            known = glossaries[at]
            terms = [] if known is None else known.find(self.keeper.opaque(part.text))
            asked.append(
                CarefulRequest(self.keeper.take(part.text, terms, watched=protect), begins[at], needed[at], is_over)
            )
        return TranslationPlan(cuts, asked, owner)


def over_after(seconds: float) -> IsOver:
    """Return a check that says yes when `seconds` from now on are over."""
    ends = time.monotonic() + seconds
    return lambda: time.monotonic() >= ends


def _check_time(is_over: IsOver) -> None:
    if is_over():
        raise DeadlineError("the texts were not even read in time; give them more time, or send fewer at once")


def _one_each(glossary: Glossary | Sequence[Glossary | None] | None, count: int) -> list[Glossary | None]:
    if glossary is None or isinstance(glossary, Glossary):
        return [glossary] * count
    if len(glossary) != count:
        raise DataError(f"there are {len(glossary)} glossaries for {count} texts; give one for all, or one for each")
    return list(glossary)


def refuse_unknown(arguments: Mapping[str, object]) -> None:
    """A setting of the search that was given to `translate` itself is named with the place where it belongs."""
    problems = []
    for name, value in arguments.items():
        setting = f"{name}={value!r}"
        if name in Sampling.model_fields:
            setting = f"sampling=Sampling({setting})"
        if name in SearchSettings.model_fields or name in Sampling.model_fields:
            problems.append(
                f"{name} is a setting of the search: translate(texts, search=SearchSettings({setting})); with all else as in the "
                f"bundle: search=translator.settings.search.changed({setting})"
            )
        else:
            problems.append(f"{name}: there is no such argument; docs/translate.md names them")
    if problems:
        raise ConfigError("Translator.translate does not take these:", problems)
