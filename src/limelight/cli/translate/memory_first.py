"""`MemoryFirst` asks a translation memory for each text before the translator, and tells the translator what it has for similar ones."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from limelight.cli.memory import open_named_store
from limelight.cli.screen import group_digits
from limelight.errors import ConfigError

if TYPE_CHECKING:
    from limelight.store.store import Store
    from limelight.translator.translate import Translator
    from limelight.translator.translation import Translation

    TranslateTold = Callable[[list[str], list[str | None] | None], list[Translation]]  # texts, and what each is told


def open_memory(asked: dict[str, Any]) -> "Store | None":
    """The store of --memory, before a model is loaded. `asked`: all options, by name."""
    if asked["memory"] is None and asked["tell_above"] is not None:
        raise ConfigError("--tell-above: of which memory? Add --memory sqlite:///FILE, or leave it out")
    if asked["memory"] is not None and (others := [f"--{name}" for name in ("cluster", "prefix", "phrase") if asked[name]]):
        raise ConfigError("--memory does not go with these; leave one out:", others)
    return None if asked["memory"] is None else open_named_store(asked["memory"])


class MemoryFirst:
    """Without a store nobody is asked. `least`: the similarity of what the translator is told; None: it is told nothing."""

    def __init__(self, translate: "TranslateTold", translator: "Translator", store: "Store | None", least: float | None) -> None:
        from limelight.translator.arguments import refuse_matches

        self._translate, self._store, self._languages, self._least = translate, store, translator.settings.languages, least
        self.used = self.told = 0
        if least is not None:
            refuse_matches(translator.settings)

    def translate(self, texts: list[str]) -> "list[Translation]":
        from limelight.translator.translation import InvalidScoresError, recall

        if self._store is None:
            return self._translate(texts, None)
        memory = self._store.memory
        known, similar = memory.find_exact(self._languages, texts), None
        places = [at for at, text in enumerate(texts) if text not in known]
        if self._least is not None:
            best = [memory.find(self._languages, texts[at], 1, self._least) for at in places]
            similar = [found[0].target if found else None for found in best]
            self.told += sum(map(bool, best))
        self.used += len(texts) - len(places)
        try:
            made = iter(self._translate([texts[at] for at in places], similar) if places else ())
        except InvalidScoresError as error:
            raise InvalidScoresError([places[at] for at in error.positions]) from None
        return [recall(text, known[text].target) if text in known else next(made) for text in texts]

    def say(self, what: str) -> None:
        if self._store is not None:
            told = f"; made by the translator, which was told a similar one: {group_digits(self.told)}" if self._least is not None else ""
            held = dict.fromkeys(pair for pair, _, _ in self._store.memory.list_origins()) if not self.used + self.told else {}
            if held and (pair := ">".join(self._languages)) not in held:  # by another spelling of the languages, say
                told += f"; it has nothing of {pair}, and segments of {', '.join(held)}"
            typer.echo(f"{what}texts taken from the memory: {group_digits(self.used)}{told}", err=True)
