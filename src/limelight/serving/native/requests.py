"""Requests of the native API are checked to the end, with the limits of this server. So what its OpenAPI document says is true.

    asked = requests(settings)
    validate_body(asked.translate, {"text": "Hello", "nbset": 3})  ->  BadRequest: nbset: there is no such key; did you mean `nbest`?

The classes say what the fields are; `requests` makes classes of them that also know how large each may be. Numbers are numbers: "5" and
true are refused where a number is wanted, and 5.0 is taken for 5, as JSON does.
"""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails
from starlette.requests import Request as HttpRequest

from limelight.serving.http.body import SMALL, read_json
from limelight.serving.http.described_routes import NO_ZERO, Tags
from limelight.serving.queue.text_thread import aside
from limelight.serving.refusals import BadRequest, TooLarge
from limelight.serving.settings import MemoryUse, ServeSettings
from limelight.text.careful.glossary import MOST_TARGETS
from limelight.text.careful.term_targets import LONGEST_TERM

# What `glossary` refuses, said in the schema: control characters, and terms of blanks alone.
_TERM = r"^[^\x00-\x1f\x7f-\x9f]*[^\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000][^\x00-\x1f\x7f-\x9f]*$"
_TOO_MANY = re.compile(r"(?:List|Tuple|Dictionary) should have at most (\d+) items? after validation, not (\d+|more)")
MOST_PROBLEMS = 20  # that are listed
UNKNOWN = 3  # keys that are named: looking for what each may mean takes time, and a body has room for 100,000


USED = "use: what the memory has of the same text is its translation. tell: and the model is told what it has for similar ones."
DIRECTED = "Id of a model; with a direction, multi:en-fr, if it has several. Else the first."


def whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(whole)]  # bounds go before the validator: after it pydantic checks but does not tell them
Name = Annotated[str, Field(max_length=255, pattern=NO_ZERO)]
Code = Annotated[str, Field(max_length=35, pattern=NO_ZERO)]
Term = Annotated[str, Field(min_length=1, max_length=LONGEST_TERM, pattern=_TERM)]
Terms = dict[Term, Term | Annotated[list[Term], Field(min_length=1, max_length=MOST_TARGETS)]]


class StrictRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class TranslateRequest(StrictRequest):
    text: str | list[str] = Field(description="One text, or several; the results are always a list.")
    model: Name | None = Field(default=None, description="Id of a model. Else the first for these languages.")
    source: Code | None = Field(default=None, description="Language of the text, as en. Else that of the model.")
    target: Code | None = Field(default=None, description="Language of the translation, as de. Else that of the model.")
    tags: Tags = Field(default=[], description="What the model is told beside the languages, as formal; GET /api/v1/models lists them.")
    nbest: Whole = Field(default=1, description="Translations wanted of each text, the best one included.")
    beam: Whole | None = Field(default=None, description="Hypotheses kept while searching. Else the model's own.")
    length_penalty: float | None = Field(default=None, ge=0, le=10, description="Above 0 favours longer translations.")
    align: bool = Field(default=False, description="Which words come from which?")
    pieces: bool = Field(default=False, description="The pieces of the translation and their probabilities.")
    prefix: str | list[str] | None = Field(
        default=None, description="What the translation begins with: one for all texts, or one for each."
    )
    protect: bool = Field(default=True, description="Placeholders, tags and addresses come back as they are.")
    segment: bool | None = Field(
        default=True, description="Sentence by sentence. null: only texts of several lines, or too long for the model."
    )
    glossary: Terms | None = Field(default=None, description="Terms, each with its translation or several that will do.")
    matches: bool = Field(default=False, description="Tell what the memory has of the same or similar texts, if the server has one.")
    memory: MemoryUse | None = Field(default=None, description=USED)
    format: Literal["text", "html"] = Field(default="text", description="html: tags and entities stay.")
    stream: bool = Field(default=False, description="Server-sent events, one for each sentence that is done.")
    timeout: float | None = Field(default=None, description="Seconds after which the answer is of no use.")

    @property
    def texts(self) -> list[str]:
        return [self.text] if isinstance(self.text, str) else self.text

    @property
    def prefixes(self) -> list[str] | None:
        if self.prefix is None or isinstance(self.prefix, str):
            return None if not self.prefix else [self.prefix] * len(self.texts)
        return self.prefix


class TokenizeRequest(StrictRequest):
    text: str
    model: Name | None = Field(default=None, description=DIRECTED)
    side: Literal["source", "target"] = "source"


class ScoreRequest(StrictRequest):
    source: str = Field(description="The text.")
    target: str = Field(description="Its translation.")
    model: Name | None = Field(default=None, description=DIRECTED)
    tags: Tags = Field(default=[], description="What the model is told beside the languages, as formal.")


class CorrectionRequest(StrictRequest):
    text: str = Field(description="What was translated.")
    correction: str = Field(description="How it should have been translated.")
    translation: str = Field(default="", description="What the server had answered, if it is known.")
    model: Name | None = Field(default=None, description=DIRECTED)
    source: Code | None = Field(default=None, description="Language of the text, as en. Else that of the model.")
    target: Code | None = Field(default=None, description="Language of the correction, as de. Else that of the model.")


@dataclass(frozen=True)
class Requests:
    translate: type[TranslateRequest]
    correct: type[CorrectionRequest]
    tokenize: type[TokenizeRequest]
    score: type[ScoreRequest]


def requests(settings: ServeSettings) -> Requests:
    """The same classes with the limits of this server in them."""
    limits = settings.limits
    text = Annotated[str, Field(max_length=limits.characters, pattern=NO_ZERO)]
    some = Annotated[text, Field(min_length=1)]
    one_or_more = text | Annotated[list[text], Field(min_length=1, max_length=limits.texts)]
    widest = min(limits.alternatives + 1, limits.beam)
    bounded: dict[str, Any] = {
        "text": one_or_more,
        "prefix": one_or_more | None,
        "nbest": Annotated[int, Field(ge=1, le=widest), BeforeValidator(whole)],
        "beam": Annotated[int, Field(ge=1, le=limits.beam), BeforeValidator(whole)] | None,
        "timeout": Annotated[float, Field(ge=0.1, le=settings.queue.timeout_seconds)] | None,
        "glossary": Annotated[Terms, Field(max_length=limits.terms)] | None,
    }
    return Requests(
        translate=with_limits(TranslateRequest, bounded),
        correct=with_limits(CorrectionRequest, {"text": some, "correction": some, "translation": text}),
        tokenize=with_limits(TokenizeRequest, {"text": text}),
        score=with_limits(ScoreRequest, {"source": text, "target": text}),
    )


Model = TypeVar("Model", bound=StrictRequest)


def with_limits(kind: type[Model], types: dict[str, Any]) -> type[Model]:
    """A class of the same name whose fields have these types; their defaults and descriptions stay."""
    fields = {}
    for name, bound in types.items():
        known = kind.model_fields[name]
        default = {} if known.is_required() else {"default": known.default}
        fields[name] = (bound, Field(description=known.description, **default))
    made: type[Model] = create_model(kind.__name__, __base__=kind, __module__=kind.__module__, **fields)  # type: ignore[call-overload]
    return made


async def read_request(request: HttpRequest, kind: type[Model]) -> Model:
    """The body of a request, read strictly and understood."""
    body = await read_json(request)
    return await aside(len(await request.body()), lambda: validate_body(kind, body), SMALL)


def validate_body(kind: type[Model], body: dict[str, Any]) -> Model:
    """A body as a request of a kind, or a refusal that lists the problems and nothing of a text."""
    found: list[ErrorDetails] = []
    known = kind.model_fields  # each look at it costs more than the rest of a key
    unknown = [key for key in body if key not in known]
    try:
        made = kind.model_validate({key: value for key, value in body.items() if key in known})
        if not unknown:
            return made
    except ValidationError as error:
        found = _telling(error.errors(include_url=False, include_context=False, include_input=False))
    problems = [_no_such_key(kind, key) for key in unknown[:UNKNOWN]]
    names = set(_names(kind))
    problems += dict.fromkeys(_sentence(detail, names) for detail in found[:MOST_PROBLEMS])
    message = "; ".join(problems)
    if not unknown and all(detail["type"] in ("string_too_long", "too_long") for detail in found):
        raise TooLarge(message, "Send less at once, or raise the limits of the server (limits.* in its settings).")
    raise BadRequest(message, "GET /openapi.json describes every field.")


def _telling(found: list[ErrorDetails]) -> list[ErrorDetails]:
    """Choose of "no text shorter than 5000" and "no list", which are both true of one long text, the first."""

    def vague(detail: ErrorDetails) -> bool:
        return detail["type"] in ("string_type", "list_type") and len(detail["loc"]) == 2

    told = {detail["loc"][0] for detail in found if not vague(detail)}
    return [detail for detail in found if not vague(detail) or detail["loc"][0] not in told]


def _no_such_key(kind: type[StrictRequest], key: str) -> str:
    near = difflib.get_close_matches(key[:40], kind.model_fields, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(kind.model_fields)}"
    return f"{key[:40]!a}: there is no such key; {hint}"


def _names(kind: type[StrictRequest]) -> Iterator[str]:
    """Yield the names of its fields, and of those of the requests inside of it."""
    for name, field in kind.model_fields.items():
        yield name
        for inner in _inside(field.annotation):
            yield from _names(inner)


def _inside(annotation: Any) -> Iterator[type[StrictRequest]]:
    if isinstance(annotation, type) and issubclass(annotation, StrictRequest):
        yield annotation
    for each in get_args(annotation):
        yield from _inside(each)


def _sentence(detail: ErrorDetails, names: set[str]) -> str:
    """Where and what, without what was given: `text.3: string should have at most 5000 characters`. Keys are given too, but for ours."""
    first, *rest = detail["loc"]
    where = ".".join([str(first), *(str(part) for part in rest if isinstance(part, int) or part in names)])
    message = "there is no such key in it" if detail["type"] == "extra_forbidden" else detail["msg"]
    message = _TOO_MANY.sub(r"at most \1 are taken at once, not \2", message)
    return f"{where}: {message[0].lower()}{message[1:]}"
