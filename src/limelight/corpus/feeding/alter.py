"""`alter_pair` changes one pair of texts as users will write it, by what was drawn and nothing else:

    ("Open %s.", "%s öffnen.")           protect  ->  "Open ⟦7⟧."      "⟦7⟧ öffnen."
    ("A red mat.", "Eine rote Matte.")   upper    ->  "A RED MAT."     "EINE ROTE MATTE."
                                         copied   ->  "A red mat ⟦2⟧." "Eine rote Matte ⟦2⟧."
                                         terms    ->  as they were, and the term "rote Matte"
                                         matches  ->  as they were, and the target of a similar pair
    ("Nach Rom.", "To Rome.")            names    ->  "Nach Wien."     "To Vienna."

First what must survive is masked, then the rest is changed. A pair that may hold something to protect and was not masked keeps its letters:
a placeholder in capitals is another one.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final, Literal, NamedTuple, get_args

from limelight.corpus.feeding.names import NameLexicon, swap_name
from limelight.text.careful import noise
from limelight.text.careful.accelerators import lift_accelerator, lift_pair
from limelight.text.careful.protect import find, mask_like, mask_pair
from limelight.text.languages import is_unspaced
from limelight.text.pieces.tokenizer import placeholder

Texts = tuple[str, str]  # source and target

# Of one pair at most one is drawn, beside `protect`. The order decides what a draw means: new kinds come last.
Drawn = Literal["copied", "upper", "title", "lower", "typos", "punctuation", "merged", "terms", "matches", "names"]
Kind = Literal["protect"] | Drawn
DRAWN: Final[tuple[Drawn, ...]] = get_args(Drawn)
KINDS: Final[tuple[Kind, ...]] = ("protect", *DRAWN)

# What `limelight.text.careful.protect` finds has one of these, and so has an accelerator: cheap to look for in a column of texts (Polars).
_NUMBERS: Final = "[0-9](?:[ .]?[A-Za-f_-]{0,20}[ .]?[0-9]){4}"
_PICTURES: Final = "\ufe0f\u20e3\u2600-\u27bf\u2b50\u2b55\u231a\u231b\u23e9-\u23f3\U0001f000-\U0001faff"
SIGNS: Final = rf"[%{{$@_<&~/\\⟦{_PICTURES}]|www\.|mailto:|[0-9]:[0-9]|{_NUMBERS}"

REMEMBERED: Final = 1 << 16  # pairs with something to protect, about 40 MB
MARK: Final = re.compile("⟦([0-9]+)⟧")
MOST_MARKS: Final = 16  # in one text; a draw has bits for this number
SHORTEST_COPY: Final = 3  # letters of a word that both sides have; shorter ones are often two words that look alike
SHORTEST_TERM: Final = 4  # letters of the words that a term begins and ends with
WORD: Final = re.compile(r"[^\W_]+(?:[-'\u2019][^\W_]+)*")


class Change(NamedTuple):
    """A change is what was drawn for a pair."""

    kind: Drawn | None
    protect: bool  # if there is anything to protect
    plain: bool  # there is not: neither side has one of the SIGNS
    numbers: int  # decides which marks are used
    detail: int  # decides the rest


@dataclass(frozen=True)
class Speech:
    """The languages, the number of marks and the names hold for all pairs of a corpus."""

    languages: tuple[str, str]
    marks: int  # placeholders that both sides have among their pieces
    names: NameLexicon = field(default_factory=NameLexicon)

    @cached_property
    def spaces(self) -> Texts:
        """What stands between two words, or two sentences, of each side."""
        source, target = ("" if is_unspaced(code) else " " for code in self.languages)
        return source, target


@dataclass(frozen=True)
class AlteredPair:
    source: str
    target: str
    terms: tuple[str, ...]  # of the target, to be told with the source
    kinds: tuple[Kind, ...]  # what was done
    match: str = ""  # the target of a similar pair, to be told with the source, too


def alter_pair(texts: Texts, change: Change, other: Texts | None, speech: Speech) -> AlteredPair | None:
    """None when nothing of what was drawn can be done to this pair. `other` is the pair to merge it with, or its match, if there is one."""
    kind, now, terms, match, done = change.kind, texts, tuple[str, ...](), "", list[Kind]()
    if kind == "merged" and other is not None:
        between = speech.spaces
        now = now[0] + between[0] + other[0], now[1] + between[1] + other[1]
        done.append("merged")
    masked = False
    if change.protect:
        now, lifted, masked = protect_pair(*now, speech.marks)
        now = renumber(now, change.numbers, speech.marks) if masked else now
        done += ["protect"] if lifted or masked else []
    if kind == "terms":
        terms = phrases(now[1], change.detail, spaced=bool(speech.spaces[1]))
        done += ["terms"] if terms else []
    elif kind == "matches" and other is not None:
        match = mask_like(lift_accelerator(other[1])[0], _list_marked(texts, now[0]) if masked else [], keep=False)
        done += ["matches"] if match else []
    elif kind == "copied" and change.plain:
        now = add_placeholders(now, draw_numbers(change.numbers, speech.marks, 2), change.detail, speech.spaces)
        done.append("copied")
    elif kind is not None and kind in REWRITES and (masked or change.plain):
        before, now = now, REWRITES[kind](now, change.detail, speech)
        done += [kind] if now != before else []
    return AlteredPair(*now, terms, tuple(done), match) if done else None


@lru_cache(maxsize=REMEMBERED)
def protect_pair(source: str, target: str, marks: int) -> tuple[Texts, bool, bool]:
    """The pair without the signs of its accelerators, and what must survive as the first marks in their order; were signs lifted, was
    anything masked? It is remembered, since to look for spans takes longer than all the rest, and a pair comes again in the next epoch."""
    lifted = lift_pair(source, target)
    now = lifted or (source, target)
    masked = mask_pair(*now, range(min(marks, MOST_MARKS)))
    return masked or now, lifted is not None, masked is not None


def _list_marked(texts: Texts, masked: str) -> list[tuple[str, int]]:
    """What the source of a masked pair has, and by which marks."""
    bare = (lift_pair(*texts) or texts)[0]
    return [(bare[begin:end], int(mark)) for (begin, end, _), mark in zip(find(bare), MARK.findall(masked), strict=True)]


def renumber(texts: Texts, draw: int, marks: int) -> Texts:
    """The same marks on both sides under other numbers, drawn by chance."""
    numbers = [placeholder(number) for number in draw_numbers(draw, marks)]
    source, target = (MARK.sub(lambda mark: numbers[int(mark[1])], text) for text in texts)
    return source, target


def draw_numbers(draw: int, count: int, most: int = MOST_MARKS) -> list[int]:
    """Draw at most `most` of the numbers below `count`, so that every mark is learnt: draw_numbers(5, 3) -> [2, 1, 0]."""
    left, numbers = list(range(count)), []
    for _ in range(min(count, most)):
        draw, at = divmod(draw, len(left))
        numbers.append(left.pop(at))
    return numbers


def add_placeholders(texts: Texts, numbers: list[int], draw: int, spaces: Texts) -> Texts:
    """Marks in a pair that has nothing to mask, so that a corpus without placeholders teaches them too.

    One takes the place of a word that both sides have once. Without such a word it stands where it means the same on both sides: at the
    beginning, at the end, after the only comma; or two stand around all, as tags do.
    """
    mark, closing = placeholder(numbers[0]), placeholder(numbers[-1])
    words, others = (Counter(WORD.findall(text)) for text in texts)
    shared = [word for word, n in words.items() if n == 1 == others[word] and len(word) >= SHORTEST_COPY]
    if shared:
        word = shared[draw % len(shared)]
        source, target = (WORD.sub(lambda found: mark if found[0] == word else found[0], text) for text in texts)
        return source, target
    ways: list[Callable[[str, str], str]] = [
        lambda text, space: mark + space + text,
        lambda text, space: f"{mark}: {text}",
        lambda text, space: noise.without_final(text) + space + mark + noise.final(text),
        lambda text, space: f"{text}{space}({mark})",
    ]
    if len(numbers) > 1:
        ways += [lambda text, space: mark + text + closing] * 2
    if all(text.count(", ") == 1 for text in texts):
        ways += [lambda text, space: text.replace(", ", f", {mark} ")] * 2
    way = ways[draw % len(ways)]
    return way(texts[0], spaces[0]), way(texts[1], spaces[1])


def phrases(text: str, draw: int, *, spaced: bool) -> tuple[str, ...]:
    """One or two terms, as a glossary might have them: up to three words that follow each other, the first and the last of them long.

    Where words are not told apart by spaces, two to five letters of a row.
    """
    words = [found.span() for found in WORD.finditer(text)]
    long = [at for at, (begin, end) in enumerate(words) if end - begin >= SHORTEST_TERM]
    if not long:
        return ()
    draw, another = divmod(draw, 2)
    taken: list[tuple[int, int]] = []
    for _ in range(1 + another):
        draw, at = divmod(draw, len(long))
        draw, more = divmod(draw, 3 if spaced else 4)
        begin, end = words[long[at]]
        if spaced:
            for after in range(long[at] + 1, min(long[at] + more + 1, len(words))):
                if text[words[after - 1][1] : words[after][0]] != " ":
                    break
                end = words[after][1] if after in long else end
        else:
            draw, skipped = divmod(draw, end - begin - 1)
            begin, end = begin + skipped, min(end, begin + skipped + 2 + more)
        if all(end <= first or last <= begin for first, last in taken):
            taken.append((begin, end))
    return tuple(text[begin:end] for begin, end in taken)


def _upper(texts: Texts, draw: int, speech: Speech) -> Texts:
    """Both sides, if the source shows it: in a script without capitals nobody can see that they are wanted."""
    source, target = texts
    if 2 * sum(map(str.islower, source)) <= sum(map(str.isalpha, source)):
        return texts
    return noise.upper(source, speech.languages[0]), noise.upper(target, speech.languages[1])


def _lower(texts: Texts, draw: int, speech: Speech) -> Texts:
    """The whole source, or one time in four only its first letter."""
    how = noise.lower if draw % 4 else noise.lower_first
    return how(texts[0], speech.languages[0]), texts[1]


def _punctuation(texts: Texts, draw: int, speech: Speech) -> Texts:
    source, target = map(noise.without_final, texts)
    return (source, target) if source and target and source != texts[0] and target != texts[1] else texts


REWRITES: Final[dict[Drawn, Callable[[Texts, int, Speech], Texts]]] = {
    "upper": _upper,
    "title": lambda texts, draw, speech: (noise.title(texts[0], speech.languages[0]), texts[1]),
    "lower": _lower,
    "typos": lambda texts, draw, speech: (noise.typos(texts[0], draw), texts[1]),
    "punctuation": _punctuation,
    "names": lambda texts, draw, speech: swap_name(texts, draw, speech.names),
}
