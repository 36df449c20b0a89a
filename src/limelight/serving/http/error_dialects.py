"""A refusal is written in the dialect of the route that was called: LibreTranslate's, DeepL's or our own."""

import math
from typing import Any, Literal

from starlette.responses import JSONResponse, Response

from limelight.serving.refusals import Refusal

Dialect = Literal["libretranslate", "deepl", "native"]
LIBRETRANSLATE = (
    "/translate", "/languages", "/detect", "/frontend/settings", "/health", "/spec", "/translate_file", "/download_file", "/suggest",
)  # fmt: skip


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
