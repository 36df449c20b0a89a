"""The lighting desk is saved as one HTML file with a trace inside, which opens without a server or a network."""

import json
from pathlib import Path
from typing import Any, Final

from limelight.errors import ModelFileError

PAGE: Final = Path(__file__).parents[1] / "page" / "desk.html"
PLACE: Final = b'<script type="application/json" id="trace">null</script>'
BEGIN, END = PLACE.split(b"null")
# Inside a script element HTML looks for "</script" and "<!--", JSON for neither: written as escapes they mean the same to JSON alone.
# The last two would end a line for old readers of JavaScript.
ESCAPES: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def page_with(values: dict[str, Any], page: Path = PAGE) -> bytes:
    """The page that shows these values, a trace as `wire.trace_json.as_json` gives it."""
    try:
        built = page.read_bytes()
    except FileNotFoundError:
        raise ModelFileError(
            f"the page of the lighting desk was not built, and an .html file is made of it ({page}); in the folder of the source, with "
            "Node.js there, run make web; a package from an index has the page in it"
        ) from None
    if built.count(PLACE) != 1:
        raise ModelFileError(f"{page} has no single place for a trace, so it is damaged or of another version; run make web")
    before, after = built.split(PLACE)
    return before + BEGIN + embed_json(values) + END + after


def embed_json(values: dict[str, Any]) -> bytes:
    """JSON that may stand inside a script element, whatever texts it holds."""
    text = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(ESCAPES).encode("utf-8", "backslashreplace")  # a lone surrogate is then an escape of JSON
