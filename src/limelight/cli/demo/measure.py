"""Two scores tell what the demo has learnt: unseen numbers without a fault, and attention that crosses. It crosses where tens and units
change places. Where French is learnt too, each language is counted, and what the tag does: hidden, it no longer decides the language.
"""

import operator
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limelight.cli.demo.numerals import SAY, english, german

if TYPE_CHECKING:
    from limelight.inspection.trace import Trace
    from limelight.translator.translate import Translator

SWAPPED = [number for number in range(21, 100) if number % 10]  # twenty-one ... ninety-nine


@dataclass(frozen=True)
class DemoScores:
    """`exact` of `unseen` numbers are translated without a fault. In `swapped` of `cases` two-digit numbers the head that aligns looks at
    the units first and at the tens last; `head` is the one it mostly is."""

    unseen: int
    exact: int
    cases: int
    swapped: int
    head: str
    wrong: tuple[tuple[str, str, str], ...]  # number, translation, what it should be
    others: dict[str, int] = field(default_factory=dict)  # of the unseen, without a fault, in each other language
    astray: dict[str, int] = field(default_factory=dict)  # of `cases`, no longer right in a language when its tag is hidden

    @property
    def lines(self) -> list[str]:
        lines = [f"unseen numbers       {self.exact} of {self.unseen} without a fault ({100 * self.exact / self.unseen:.1f} %)"]
        lines += [f"                     {source}: {said}, should be {right}" for source, said, right in self.wrong[:2]]
        lines += [f"  in {each}              {right} of {self.unseen}" for each, right in self.others.items()]
        lines += [f"  <2{each}> hidden       {lost} of {self.cases} are no longer {each}" for each, lost in self.astray.items()]
        share = 100 * self.swapped / self.cases
        return [
            *lines,
            f"twenty-one and like  in {self.swapped} of {self.cases} the light crosses ({share:.1f} %), mostly that of {self.head}",
        ]

    @property
    def values(self) -> dict[str, Any]:
        return asdict(self)


def measure(translator: "Translator", corpus: Path) -> DemoScores:
    sources, references = (_lines(corpus / f"test.{language}") for language in ("en", "de"))
    found = [each.text for each in translator.translate(sources)]
    wrong = [one for one in zip(sources, found, references, strict=True) if one[1] != one[2]]
    heads: Counter[str] = Counter()
    swapped = 0
    for number in SWAPPED:
        trace = translator.trace(english(number), nbest=1)
        heads[trace.align.head] += 1
        swapped += trace.target.text == german(number) and crosses(trace)
    others, astray = dict[str, int](), dict[str, int]()
    for language in dict.fromkeys(pair[1] for pair in translator.directions if len(translator.directions) > 1):
        view = translator.towards(language)
        said = found if language == "de" else [each.text for each in view.translate(sources)]
        others[language] = sum(map(operator.eq, said, _lines(corpus / f"test.{language}")))
        unlit = [view.trace(english(number), nbest=1, mask_source=[0]).target.text for number in SWAPPED]  # the tag is the first piece
        astray[language] = sum(text != SAY[language](number) for text, number in zip(unlit, SWAPPED, strict=True))
    return DemoScores(
        unseen=len(sources),
        exact=len(sources) - len(wrong),
        cases=len(SWAPPED),
        swapped=swapped,
        head=heads.most_common(1)[0][0],
        wrong=tuple(wrong[:5]),
        others=others,
        astray=astray,
    )


def crosses(trace: "Trace") -> bool:
    """Of ▁twenty - one and ▁ein und zwanzig: does ▁ein come from one, and zwanzig from ▁twenty? A tag may stand before them."""
    source_of = {target: source for source, target, _ in trace.align.links}
    first = next(at for at, token in enumerate(trace.source.tokens) if token.word is not None)
    return source_of.get(0) == first + 2 and source_of.get(2) == first


def _lines(path: Path) -> list[str]:
    return path.read_bytes().decode().removesuffix("\n").split("\n")
