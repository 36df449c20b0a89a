"""A refusal is written in the dialect of the route that was called: LibreTranslate's, DeepL's or our own. Paths tell which."""

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from limelight.serving.refusals import Refusal

Dialect = Literal["libretranslate", "deepl", "native"]
LIBRETRANSLATE = (
    "/translate", "/languages", "/detect", "/frontend/settings", "/health", "/spec", "/translate_file", "/download_file", "/suggest",
)  # fmt: skip
Sentence = Annotated[str, Field(max_length=10_000)]


class Problem(BaseModel):
    code: Sentence = Field(description="For programs.")
    message: Sentence = Field(description="For people.")
    hint: Sentence | None = Field(description="What to do about it.")


class ErrorAnswer(BaseModel):
    error: Problem


class LibreTranslateRefusal(BaseModel):
    error: Sentence


class DeepLRefusal(BaseModel):
    message: Sentence
    detail: Sentence = ""


# What a refusal is called in the OpenAPI document, and its shape.
SHAPES: dict[Dialect, tuple[str, type[BaseModel]]] = {
    "native": ("Refusal", ErrorAnswer),
    "libretranslate": ("LibreTranslateRefusal", LibreTranslateRefusal),
    "deepl": ("DeepLRefusal", DeepLRefusal),
}


def path_of(scope: Scope) -> str:
    """Cut off the prefix of `root_path`, unless a proxy before us has done so: with /mt, /mt/translate -> /translate."""
    path: str = scope["path"]
    prefix = scope.get("root_path", "")
    return path[len(prefix) :] if prefix and (path + "/").startswith(prefix + "/") else path


def dialect_of(path: str) -> Dialect:
    """dialect_of("/v2/translate") -> "deepl"; what belongs to nobody else is ours."""
    if path == "/v2" or path.startswith("/v2/"):
        return "deepl"
    if any(path == route or path.startswith(f"{route}/") for route in LIBRETRANSLATE):
        return "libretranslate"
    return "native"


def words(dialect: Dialect, refusal: Refusal) -> dict[str, Any]:
    if dialect == "libretranslate":
        return {"error": refusal.message}
    if dialect == "deepl":
        return {"message": refusal.message, **({"detail": refusal.hint} if refusal.hint else {})}
    return {"error": {"code": refusal.code, "message": refusal.message, "hint": refusal.hint}}


def answer(path: str, refusal: Refusal) -> Response:
    headers = {}
    if refusal.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(refusal.retry_after)))
    return JSONResponse(words(dialect_of(path), refusal), refusal.status, headers)
