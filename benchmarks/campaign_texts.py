"""Texts that nobody would write, through `Translator.translate` in this process.

What must hold: no exception but a LimelightError; under 1 s of CPU for what has fewer than 2,000 characters, and time that does not more
than double when a text doubles; what must survive is in the translation, or `protected` and a warning say that it is not; the same twice.
"""

import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from campaign_journal import Journal, shrunk
from campaign_strings import KEPT, hostile, pumped
from limelight.decoding.config import SearchSettings
from limelight.errors import LimelightError
from limelight.text.careful.glossary import Glossary
from limelight.translator.translate import Translator
from limelight.translator.translation import Translation

BUNDLE = Path(__file__).parents[1] / "tests" / "bundles" / "format-1"
AT_ONCE = 40
SLOW = 1.0  # seconds of CPU
SHORT = 2000  # characters
GROWTH = 3.5  # times the CPU for twice the text: more is not linear, whatever else the machine does
TERMS = ("one", "two", "Hello", "IT", "中文", "a b", "x", "-", "字", "twenty-one", ".", "Open file", "%s")
TARGETS = ("eins", "Zwei X", "%s", "-", "中", "<b>", "- - x", "ein|zwei", "⟦0⟧", "字")
LEADS = ("", "eins", "Zwei ", "%s", "⟦0⟧", "-", "--- ", "<b>", "drei", "\u202e", "12345")
TOLD = {"unprotected", "source_cut"}  # what says that something was lost


@dataclass(frozen=True)
class Options:
    search: dict[str, Any] = field(default_factory=dict)
    glossary: dict[str, str] | None = None
    prefix: str | None = None
    phrase: str | None = None
    segment: bool | None = None
    align: bool = False

    @classmethod
    def drawn(cls, random: Random) -> "Options":
        search: dict[str, Any] = {"beam": random.choice((1, 1, 1, 1, 4))}
        if random.random() < 0.15:
            search |= {"nbest": random.randint(2, 4), "beam": 4}
        glossary = {random.choice(TERMS): random.choice(TARGETS) for _ in range(random.randint(1, 5))}
        return cls(
            search,
            glossary if random.random() < 0.2 else None,
            random.choice(LEADS) if random.random() < 0.12 else None,
            random.choice(("eins", "drei", "zwei %s")) if random.random() < 0.06 else None,
            random.choice((None, True, True, False)),
            random.random() < 0.2,
        )

    def translate(self, translator: Translator, texts: list[str]) -> list[Translation]:
        settings: SearchSettings = translator.settings.search.changed(**self.search)
        return translator.translate(
            texts,
            settings,
            prefixes=None if self.prefix is None else [self.prefix] * len(texts),
            phrases=None if self.phrase is None else [[self.phrase]] * len(texts),
            glossary=None if self.glossary is None else Glossary.of(self.glossary),
            segment=self.segment,
            align=self.align,
        )

    @property
    def adds(self) -> bool:
        """Something that the text does not have may be in the translation."""
        return self.prefix is not None or self.phrase is not None or self.glossary is not None


def run(journal: Journal, count: int) -> None:
    translator = Translator.load(BUNDLE, threads=1)
    for number in journal.numbers(count, AT_ONCE):
        random = Random(f"{journal.seed}/{number}")
        options = Options.drawn(random)
        if random.random() < 0.08:
            size = random.choice((500, 1000, 1900, 4000))
            attack(journal, translator, number, [pumped(random, size) for _ in range(2)], options)
            journal.counts["long"] += 2
        texts = [hostile(random, 8) for _ in range(AT_ONCE)]
        attack(journal, translator, number, texts, options)


def attack(journal: Journal, translator: Translator, number: int, texts: list[str], options: Options) -> None:
    began = time.process_time()
    try:
        made = options.translate(translator, texts)
    except LimelightError as refusal:
        journal.counts[f"refused {type(refusal).__name__}"] += 1
        if len(texts) > 1:
            for text in texts:
                attack(journal, translator, number, [text], options)
        return
    except Exception as error:
        if len(texts) > 1:
            for text in texts:
                attack(journal, translator, number, [text], options)
        else:
            small = shrunk(texts[0], lambda text: _crashes(translator, text, options))
            journal.fault(
                number,
                f"crash {type(error).__name__}",
                text=small,
                options=options,
                trace=traceback.format_exc()[-900:],
            )
        return
    if time.process_time() - began > SLOW:
        for text in texts:
            judge_time(journal, translator, number, text, options)
    for text, translation in zip(texts, made, strict=True):
        for what in problems(text, translation, options):
            kind = what.split(":")[0]
            small = shrunk(text, lambda part, kind=kind: _shows(translator, part, options, kind), 5.0)
            [again] = options.translate(translator, [small])
            journal.fault(
                number,
                kind,
                seen=what,
                text=small,
                options=options,
                came=again.text,
                warned=[w.code for w in again.warnings],
            )
    if number % (4 * AT_ONCE) == 0:
        judge_same(journal, translator, number, texts, made, options)


def problems(text: str, made: Translation, options: Options) -> list[str]:
    codes, found = {notice.code for notice in made.warnings}, []
    lost = [each for each in KEPT if text.split().count(each) > made.text.count(each)]  # those that stand by themselves
    if lost and made.protected:
        found.append(f"lost while protected: {lost}")
    if lost and not codes & TOLD:
        found.append(f"lost silently: {lost}")
    if not made.protected and not codes & TOLD:
        found.append("unprotected silently")
    if made.finish == "length" and "length" not in codes:
        found.append("length silently")
    if any(word in text for word in ("one", "two", "Hello")) and not made.text.strip() and not codes:
        found.append("empty silently")
    if not 0.0 <= made.confidence <= 1.0:
        found.append(f"confidence: {made.confidence}")
    if options.segment and not options.adds and text.strip() and _breaks(text) != _breaks(made.text):
        found.append("line breaks changed")
    if len(made.alternatives) > options.search.get("nbest", 1) - 1:
        found.append("more alternatives than asked for")
    if made.alignment is not None:
        words = len(text.split(" ")), len(made.text.split(" "))
        if any(one >= words[0] or other >= words[1] for one, other in made.alignment.words):
            found.append("alignment of words that are not there")
    return found


def judge_time(journal: Journal, translator: Translator, number: int, text: str, options: Options) -> None:
    """Of one text. What is slow and short is a fault, and so is what grows faster than its length."""
    seconds = _cpu(translator, text, options)
    if seconds < SLOW / 2:
        return
    half = _cpu(translator, text[: len(text) // 2], options)
    facts = {"seconds": round(seconds, 2), "half": round(half, 2), "characters": len(text), "options": options}
    if seconds > SLOW and len(text) < SHORT:
        journal.fault(number, "slow", text=text[:200], **facts)
    if half > 0.05 and seconds > GROWTH * half and seconds > GROWTH * _cpu(translator, text[: len(text) // 2], options):
        journal.fault(number, "not linear", text=text[:200], **facts)


def judge_same(journal: Journal, translator: Translator, number: int, texts: list[str], made: list[Translation], options: Options) -> None:
    """In another order, and so in other batches."""
    again = options.translate(translator, texts[::-1])[::-1]
    for text, one, other in zip(texts, made, again, strict=True):
        if one.text != other.text or Counter(w.code for w in one.warnings) != Counter(w.code for w in other.warnings):
            journal.fault(number, "not the same twice", text=text, options=options, one=one.text, other=other.text)


def _cpu(translator: Translator, text: str, options: Options) -> float:
    began = time.process_time()
    options.translate(translator, [text])
    return time.process_time() - began


def _crashes(translator: Translator, text: str, options: Options) -> bool:
    try:
        options.translate(translator, [text])
    except LimelightError:
        return False
    except Exception:
        return True
    return False


def _shows(translator: Translator, text: str, options: Options, kind: str) -> bool:
    try:
        [made] = options.translate(translator, [text])
    except Exception:
        return False
    return any(what.startswith(kind) for what in problems(text, made, options))


def _breaks(text: str) -> list[str]:
    return [sign for sign in text if sign in "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"]
