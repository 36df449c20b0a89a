"""`recall_texts` looks up what was translated before: matches stand beside translations, and the same text is used if that is asked for."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from limelight.serving.native.requests import TranslateRequest
from limelight.serving.queue.documents import check_told
from limelight.serving.queue.served_model import ServedModel
from limelight.serving.queue.service import Service
from limelight.serving.queue.work import Deadline
from limelight.serving.refusals import BadRequest, SwitchedOff, TooLarge
from limelight.translator.translation import DIGITS, recall

MOST_SEARCHED = 128  # texts of a request that wants matches; each takes some 20 ms

if TYPE_CHECKING:
    from limelight.store.memory import MemoryMatch
    from limelight.store.store import Store


@dataclass(frozen=True)
class RecalledTexts:
    """`used` are the texts, by number, whose translation is the memory's; `left` are the others, for the model."""

    texts: list[str]
    used: "dict[int, MemoryMatch]"
    matches: "list[list[MemoryMatch]] | None"
    similar: "list[MemoryMatch | None] | None" = None  # what the model is told, for each that is left

    @property
    def left(self) -> list[str]:
        return [text for at, text in enumerate(self.texts) if at not in self.used]

    @property
    def told(self) -> list[str | None] | None:
        return None if self.similar is None else [None if found is None else found.target for found in self.similar]

    def join(self, results: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Those of the model and those of the memory, in the order of the texts."""
        made, similar = iter(results), iter(self.similar or ())
        for at, text in enumerate(self.texts):
            found = _result(text, self.used[at]) if at in self.used else next(made)
            told = next(similar, None) if at not in self.used else None
            found = found if told is None else {**found, "told": _match(text, told)}
            yield found if self.matches is None else {**found, "matches": [_match(text, each) for each in self.matches[at]]}


async def recall_texts(service: Service, pair: tuple[str, str], asked: TranslateRequest, deadline: Deadline) -> RecalledTexts:
    """Who leaves ends the deadline, and with it the search."""
    texts, use = asked.texts, asked.memory is not None
    if not use and not asked.matches:
        return RecalledTexts(texts, {}, None)

    def find(store: "Store", text: str, most: int = 5) -> "list[MemoryMatch]":
        if deadline.is_over():
            raise deadline.late()
        return store.memory.find(pair, text, most)

    def look(store: "Store") -> RecalledTexts:
        exact = store.memory.find_exact(pair, texts) if use else {}
        matches = [find(store, text) for text in texts] if asked.matches else None
        used = {at: exact[text] for at, text in enumerate(texts) if text in exact}
        similar = [find(store, text, 1) for text in texts if text not in exact and asked.memory == "tell"]
        return RecalledTexts(texts, used, matches, [next(iter(found), None) for found in similar] or None)

    assert service.store is not None  # `check_memory` was asked
    with deadline:
        try:
            async with asyncio.timeout(deadline.left):
                return await service.store.ask(look, search=True)
        except TimeoutError:
            raise deadline.late() from None


def check_memory(service: Service, asked: TranslateRequest, served: ServedModel) -> None:
    """Before anything is paid for: is there a memory, and can it be asked together with the rest?"""
    wanted = [name for name, given in (("matches", asked.matches), ("memory", asked.memory is not None)) if given]
    others = {"format=html": asked.format == "html", "stream=true": asked.stream, "prefix": asked.prefixes is not None}
    if wanted and service.store is None:
        raise SwitchedOff(f"{', '.join(wanted)}: this server has no memory", "The operator can give it one: limelight serve --store.")
    if asked.memory == "tell":
        check_told(served)
    if (asked.matches or asked.memory == "tell") and len(asked.texts) > MOST_SEARCHED:
        said = f"{', '.join(wanted)}: {len(asked.texts):,} texts, and {MOST_SEARCHED} may be looked for at once"
        raise TooLarge(said, "Send several requests.")
    if wanted and any(others.values()):
        raise BadRequest(f"{', '.join(wanted)}: not with {', '.join(name for name, given in others.items() if given)}", "Leave one out.")


def _match(text: str, found: "MemoryMatch") -> dict[str, Any]:
    """A `MatchAnswer`."""
    return {**asdict(found), "score": round(found.score, DIGITS), "difference": found.describe_difference(text)}


def _result(text: str, found: "MemoryMatch") -> dict[str, Any]:
    """A `ResultAnswer` that no model made."""
    made = recall(text, found.target).as_dict()
    same = {name: made[name] for name in ("text", "confidence", "finish", "protected", "warnings", "alternatives", "degenerate")}
    return {**same, "score": None, "words": [], "source_pieces": None, "characters": len(text), "from_memory": True}
