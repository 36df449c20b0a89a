"""Texts and files of both public dialects are charged for and translated, once their languages are known. Texts may have tags; sizes are
noted for the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request

from limelight.decoding.config import SearchSettings
from limelight.documents.archives.archive import ARCHIVES
from limelight.documents.kinds import kind_of
from limelight.documents.sentences import count_characters
from limelight.errors import ConfigError
from limelight.serving.access.rate_limits import Caller
from limelight.serving.http.disconnect import while_connected
from limelight.serving.middleware.request_log import note
from limelight.serving.queue.markup import Markup
from limelight.serving.queue.served_model import ServedModel
from limelight.serving.queue.service import Service, TranslateOptions
from limelight.serving.queue.text_thread import aside, weight
from limelight.serving.queue.work import Deadline
from limelight.serving.refusals import BadRequest
from limelight.serving.settings import MemoryUse, ServeSettings
from limelight.text.careful.glossary import Glossary
from limelight.translator.translation import Translation


@dataclass(frozen=True)
class CompatOptions:
    """Options say how texts are translated. `markup` None: they are plain. `segment` False: each is one sentence, whatever it says."""

    alternatives: int = 0
    markup: Markup | None = None
    segment: bool = True
    glossary: Glossary | None = None
    memory: MemoryUse | None = None  # wished for by the request; the operator may want it for all


@dataclass(frozen=True)
class TextAnswer:
    text: str
    alternatives: list[str]  # best first, all different


class RequestTranslator:
    """The texts of one request are translated here, after its body has been read."""

    def __init__(self, service: Service, request: Request, caller: Caller) -> None:
        self.service, self.request, self.caller = service, request, caller

    async def texts(self, texts: Sequence[str], served: Sequence[ServedModel | None], wish: CompatOptions) -> list[TextAnswer]:
        """Answer each text by its own translator. Without one, or without a letter or digit in it, a text is its own answer.

        They were paid for before: already to detect their language is work.
        """
        found = [TextAnswer(text, []) for text in texts]
        deadline = self.service.deadline()
        spoken = await aside(weight(texts), lambda: [is_spoken(text) for text in texts])
        for each in dict.fromkeys(served):
            if each is None:
                continue
            note(self.request, model=each.id)
            places = [at for at in range(len(texts)) if served[at] is each and spoken[at]]
            given = [texts[at] for at in places]
            if given:
                made = await while_connected(self.request, self._translate(given, each, wish, deadline))
                for at, answer in zip(places, made, strict=True):
                    found[at] = answer
        return found

    async def _translate(self, texts: list[str], served: ServedModel, wish: CompatOptions, deadline: Deadline) -> list[TextAnswer]:
        own = served.translator.settings.search
        search = None if wish.markup else with_alternatives(own, wish.alternatives)
        options = TranslateOptions(
            served,
            search=search,
            segment=wish.segment,
            glossary=wish.glossary,
            memory=wish.memory or usual_memory(self.service.settings, served),
            deadline=deadline,
            caller=self.caller.name,
        )
        if wish.markup is None:
            plain = await self.service.translate(texts, options)
            pieces = sum(each.source_pieces for each in plain)
            answers = [answer_of(made, wish.alternatives) for made in plain]
        else:
            marked, pieces = await self.service.markup(texts, wish.markup, options)
            answers = [TextAnswer(made.text, []) for made in marked]
        note(self.request, pieces=pieces)
        return answers

    def pay_for(self, texts: Sequence[str]) -> None:
        self.pay(sum(map(len, texts)), len(texts))

    def pay(self, characters: int, texts: int) -> None:
        self.caller.spend(characters, texts)
        note(self.request, characters=characters, texts=texts)


def with_alternatives(own: SearchSettings, alternatives: int) -> SearchSettings | None:
    """Return a search that finds more than the best one. None: the bundle's own does, so that most requests share their batches."""
    wanted = alternatives + 1
    if own.nbest == wanted:
        return None
    if own.sampling is not None:
        return own.changed(nbest=wanted)
    beam = max(own.beam, -(-wanted // own.groups) * own.groups)
    return own.changed(nbest=wanted, beam=beam)


def usual_memory(settings: ServeSettings, served: ServedModel) -> MemoryUse | None:
    """What the operator wants of the memory, as far as the model was taught it."""
    return "use" if settings.memory and not served.translator.settings.takes_matches else settings.memory


def is_spoken(text: str) -> bool:
    """Emoji, blanks and signs are the same in every language, and no model has learnt them."""
    return any(character.isalnum() for character in text)


def answer_of(made: Translation, most: int) -> TextAnswer:
    others = dict.fromkeys(each.text for each in made.alternatives if each.text != made.text)
    return TextAnswer(made.text, list(others)[:most])


class FileTranslator:
    """A whole file is translated for one request.

    A file costs as many characters as it has bytes, and as many requests as texts of the largest size would. It is paid for when this is
    made: already to detect its language is work. What is packed in it costs the rest when it is found.
    """

    def __init__(self, service: Service, request: Request, caller: Caller, name: str, data: bytes) -> None:
        self.service, self.request, self.caller, self.data = service, request, caller, data
        try:
            self.kind = kind_of(name)
        except ConfigError:
            raise BadRequest("Invalid request: file format not supported") from None
        RequestTranslator(service, request, caller).pay(len(data), -(-len(data) // service.settings.limits.characters))

    async def translate(
        self, served: ServedModel | None, glossary: Glossary | None = None, *, memory: MemoryUse | None = None, check: bool = False
    ) -> bytes:
        if served is None:
            return self.data
        note(self.request, model=served.id)
        memory = memory or usual_memory(self.service.settings, served)
        options = TranslateOptions(served, glossary=glossary, memory=memory, check=check, caller=self.caller.name)
        spend_rest = self.caller.spend_rest(len(self.data))

        def admit(texts: Sequence[str]) -> None:
            if self.kind in ARCHIVES:
                spend_rest(characters := count_characters(texts))
                note(self.request, characters=max(characters, len(self.data)))

        return (await while_connected(self.request, self.service.document(self.data, self.kind, options, admit))).data
