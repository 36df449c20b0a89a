"""Models describe what the LibreTranslate-compatible routes take and answer, in JSON as clients write it: what is absent may be null."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from limelight.serving.http.body import JSON, MULTIPART, URLENCODED
from limelight.serving.http.described_routes import (
    NO_ZERO,
    GivenShort,
    LanguageCode,
    Short,
    Tags,
    Text,
    file_field,
    make_body,
)
from limelight.serving.settings import ServeSettings

Texts = Annotated[list[Text], Field(max_length=10_000)]


class DetectedAnswer(BaseModel):
    confidence: Annotated[float, Field(ge=0, le=100)]
    language: Short


Guesses = Annotated[list[DetectedAnswer], Field(min_length=1, max_length=3)]


class TranslatedTextAnswer(BaseModel):
    """Each is a list where `q` is one."""

    translatedText: Text | Texts  # noqa: N815 (the names are that API's)
    alternatives: Texts | Annotated[list[Texts], Field(max_length=10_000)] = []
    detectedLanguage: DetectedAnswer | Annotated[list[DetectedAnswer], Field(max_length=10_000)] | None = None  # noqa: N815


class LanguageName(BaseModel):
    code: LanguageCode
    name: Short


class LanguageAnswer(LanguageName):
    targets: Annotated[list[LanguageCode], Field(max_length=10_000)]


Languages = Annotated[list[LanguageAnswer], Field(max_length=10_000)]


class FrontendLanguages(BaseModel):
    source: LanguageName
    target: LanguageName


class FrontendAnswer(BaseModel):
    charLimit: Annotated[int, Field(ge=-1, le=1 << 31)]  # noqa: N815
    frontendTimeout: Annotated[int, Field(ge=0, le=1 << 31)]  # noqa: N815
    apiKeys: bool  # noqa: N815
    keyRequired: bool  # noqa: N815
    suggestions: bool
    filesTranslation: bool  # noqa: N815
    supportedFilesFormat: Annotated[list[Short], Field(max_length=100)]  # noqa: N815
    language: FrontendLanguages


class ReadyAnswer(BaseModel):
    status: Literal["ok"]


class SuggestAnswer(BaseModel):
    success: bool


class TranslatedFileAnswer(BaseModel):
    translatedFileUrl: Annotated[str, Field(max_length=10_000)]  # noqa: N815


class LibreTranslateBodies:
    """These are models by content type, with the limits of this server in them."""

    def __init__(self, settings: ServeSettings) -> None:
        limits = settings.limits
        # Where no key is asked for, nobody looks at it.
        key: Any = Any if settings.keys is None else GivenShort | None
        text: Any = Annotated[str, Field(max_length=limits.characters, pattern=NO_ZERO)]
        one: Any = Annotated[text, Field(min_length=1)]
        q = one | Annotated[list[text], Field(min_length=1, max_length=limits.texts)]
        pair = {"source": LanguageCode, "target": LanguageCode}
        number = Annotated[float, Field(ge=-1_000_000, le=limits.alternatives)]
        written = Annotated[str, Field(min_length=1, max_length=6, pattern="^-?[0-9]{1,5}$")]
        memory: Any = {"memory": Literal["use", "tell", ""]}
        options = {**memory, "tags": Tags | None, "format": Literal["text", "html", ""] | None, "alternatives": number | written | None}
        form = make_body("TranslateForm", {"q": one, **pair}, {**memory, "format": Literal["text", "html"], "api_key": GivenShort})
        asked = make_body("DetectForm", {"q": one}, {"api_key": GivenShort})
        better = {"q": one, "s": one, **pair}
        self.translate = {
            JSON: make_body("TranslateBody", {"q": q, **pair}, {**options, "api_key": key}),
            URLENCODED: form,
            MULTIPART: form,
        }
        self.detect = {JSON: make_body("DetectBody", {"q": q}, {"api_key": key}), URLENCODED: asked, MULTIPART: asked}
        self.suggest = {
            JSON: make_body("SuggestBody", better, {"api_key": key}),
            URLENCODED: make_body("SuggestForm", better, {"api_key": GivenShort}),
        }
        wishes = {"tags": Tags, **memory, "check": Literal["true", "false"], "model": GivenShort, "api_key": GivenShort}
        self.file = {MULTIPART: make_body("FileForm", {"file": file_field(limits.file_bytes), **pair}, wishes)}
