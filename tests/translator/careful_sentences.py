"""Sentences with things that must survive, and sentences that make translators stumble. Shared by the tests and the claim.

What was put into a sentence is known here, so that the check needs none of the patterns that protect it.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from random import Random

TEMPLATES = (
    "The file {} could not be opened.",
    "Please send {} to {} before Monday.",
    "{} of {} items were copied.",
    "Click {} to continue, or {} to cancel.",
    "A man in a blue shirt is reading {}.",
    "The value of {} is {} and the limit is {}.",
    "We paid {} for {} and got {} back.",
    "Two dogs run past {}.",
    "Unknown option {}; see {} for help.",
    "{}: no such file or directory",
)
WORDS = ["file", "name", "user", "help", "page", "image", "price", "account", "server", "message", "window"]


def _digits(random: Random, count: int) -> str:
    return str(random.randint(1, 9)) + "".join(random.choices(string.digits, k=count - 1))


def _tagged(random: Random) -> str:
    name = random.choice(["b", "i", "em", "strong", "code", "u"])
    inner = random.choice(WORDS)
    if random.random() < 0.3:
        return f"<{name}>{inner} <i>{random.choice(WORDS)}</i></{name}>"
    return f"<{name}>{inner}</{name}>"


KINDS = {
    "integer": lambda r: _digits(r, r.randint(1, 12)),
    "decimal": lambda r: f"{_digits(r, r.randint(1, 3))}{r.choice('.,')}{_digits(r, 2)}",
    "thousands": lambda r: f"{_digits(r, r.randint(1, 3))}{(s := r.choice(',.'))}{_digits(r, 3)}{s}{_digits(r, 3)}",
    "time": lambda r: f"{r.randint(0, 23)}:{r.randint(10, 59)}",
    "date": lambda r: f"{r.randint(2001, 2030)}-{r.randint(10, 12)}-{r.randint(10, 28)}",
    "IBAN": lambda r: "DE" + " ".join([_digits(r, 2), *(_digits(r, 4) for _ in range(4)), _digits(r, 2)]),
    "URL": lambda r: f"https://{r.choice(WORDS)}.example.org/{r.choice(WORDS)}?id={_digits(r, 3)}",
    "e-mail": lambda r: f"{r.choice(WORDS)}.{r.choice(WORDS)}@example.com",
    "{0}": lambda r: r.choice(["{0}", "{1}", "{name}", "{{user}}", "${path}"]),
    "%s": lambda r: r.choice(["%s", "%d", "%1$s", "%2$d", "%.2f"]),
    "%(n)d": lambda r: r.choice(["%(n)d", "%(name)s"]),
    "tags": _tagged,
    "entity": lambda r: r.choice(["&amp;", "&lt;", "&nbsp;", "&copy;"]),
    "path": lambda r: r.choice([f"/usr/share/{r.choice(WORDS)}", f"C:\\{r.choice(WORDS)}\\x.txt", f"~/{r.choice(WORDS)}/a.log"]),
    "emoji": lambda r: r.choice("😀🚀🎉👍🐈"),
}  # fmt: skip
NUMBERS = {"integer", "decimal", "thousands"}
BROKEN_HTML = (
    "<b>bold",
    "a </i> b",
    "<a href='x>y",
    "<<b>>",
    "<b><i>x</b></i>",
    "</",
    "<!-- no end",
    "<b <i>> &amp &;",
)
_TAG = re.compile(r"</?\w+>")


@dataclass(frozen=True)
class Templated:
    text: str
    kinds: tuple[str, ...]
    items: tuple[str, ...]


def templated(count: int, seed: int = 22) -> list[Templated]:
    """Sentences with one to three things in them, all kinds equally often."""
    random, made = Random(seed), []
    names = list(KINDS)
    for number in range(count):
        template = random.choice(TEMPLATES)
        slots = template.count("{}")
        kinds = [names[(number + i * 4) % len(names)] for i in range(slots)]
        items = [KINDS[kind](random) for kind in kinds]
        parts = template.split("{}")
        text = "".join(a + b for a, b in zip(parts, [*items, ""], strict=True))
        made.append(Templated(text, tuple(kinds), tuple(items)))
    return made


def lost(sentence: Templated, translation: str) -> list[str]:
    """The kinds of which something is missing, more than it was, or wrongly nested."""
    wrong = []
    for kind, item in zip(sentence.kinds, sentence.items, strict=True):
        if kind == "tags":
            same = Counter(_TAG.findall(sentence.text)) == Counter(_TAG.findall(translation))
            held = same and well_formed(translation)
        elif kind in NUMBERS:
            # Separators follow the language, digits do not; and one digit may be a word.
            held = _figures(item) in _figures(translation) or len(item) == 1
        else:
            held = translation.count(item) >= Counter(sentence.items)[item]
        if not held:
            wrong.append(kind)
    return wrong


def _figures(text: str) -> str:
    return re.sub(r"(?<=\d)[.,\s'](?=\d)", "", text)


class _Stack(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fine = True

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.fine = self.fine and bool(self.open) and self.open.pop() == tag


def well_formed(text: str) -> bool:
    stack = _Stack()
    stack.feed(text)
    return stack.fine and not stack.open


_ODD = (
    "increasingly", "заранее", "never", "anti", "salad", "Black", "????????", "y7 y7 y7 y7", "no no no no", "!!!", "...", "1 1 1 1 1 1",
    "ha ha ha ha", "I", "a", "A", "the", "of", "Ok", "ok ok", "SOPA DE ERVILHA", "YES", "NO!", "hm", "lol", "www", "-",
    "--", "* * *", "....?",
    "aaaaaaaaaaaaaaaa", "test test test", "x = x + 1", "C++", "(c)", "TODO", "N/A", "und", "der die das", "svart", "мир",
    "世界", "ありがとう",
    "\u200b", "🙂🙂🙂", "1234567890", "3.14159", "http://", "@", "# #", "a b c d e f g", "zzz", "Hello Hello Hello Hello", "bye bye", "0",
)  # fmt: skip


def regression_inputs(sentences: Sequence[str], count: int = 200) -> list[str]:
    """Inputs that made translators loop, then beginnings, single words and repeats of real sentences."""
    random, made = Random(17), list(_ODD)
    while len(made) < count:
        words = random.choice(sentences).split()
        way = len(made) % 4
        made.append(
            [
                random.choice(words),
                " ".join(words[: random.randint(1, 3)]),
                " ".join([random.choice(words)] * random.randint(3, 8)),
                " ".join(random.sample(words, min(4, len(words)))),
            ][way]
        )
    return made[:count]


PERTURBATIONS = {
    "typo": lambda text, r: _typo(text, r),
    "case": lambda text, r: text.upper() if r.random() < 0.5 else text.lower(),
    "final dot removed": lambda text, r: text.rstrip(".!?"),
    "doubled space": lambda text, r: text.replace(" ", "  ", 1 + r.randint(0, 2)),
    "prefix token": lambda text, r: r.choice(["- ", "* ", "> ", "1. ", '"']) + text,
    "truncated word": lambda text, r: text[: max(1, len(text) - r.randint(2, 6))],
    "swapped words": lambda text, r: _swapped(text, r),
    "wrong language": lambda text, r: text + r.choice([" und so weiter", " et cetera", " и так далее", " dhe kështu"]),
}


def _typo(text: str, random: Random) -> str:
    at = random.randrange(max(1, len(text) - 1))
    return text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]


def _swapped(text: str, random: Random) -> str:
    words = text.split(" ")
    at = random.randrange(max(1, len(words) - 1))
    words[at : at + 2] = reversed(words[at : at + 2])
    return " ".join(words)
