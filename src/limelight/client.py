"""A `Client` asks a server for translations, with nothing but the standard library.

    Client("http://127.0.0.1:5000").translate(["A dog runs."], target="de")  ->  ["Ein Hund rennt."]

`call` asks any route of the API and returns its JSON; `/openapi.json` of a server lists them.
"""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterable
from typing import Any, Final

LARGEST_ANSWER: Final = 64 << 20  # bytes
PER_REQUEST: Final = 128  # texts: what a server takes at once unless it was told otherwise


class KeptAddress(urllib.request.HTTPRedirectHandler):
    """What redirects is not followed: the key would go to whoever is named, and the texts would stay behind."""

    def redirect_request(self, *_: Any) -> None:
        return None


_ask = urllib.request.build_opener(KeptAddress).open


class ServerError(Exception):
    """A server refused a request, or cannot be reached; `status` is that of HTTP, 0 where there was no answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """A client has the address of a server and, where it asks for one, a key."""

    def __init__(self, address: str = "http://127.0.0.1:5000", key: str | None = None, timeout: float = 60.0) -> None:
        if not address.startswith(("http://", "https://")):
            raise ValueError(f"{address} is no address of a server; write it as http://127.0.0.1:5000")
        self.address, self.timeout = address.rstrip("/"), timeout
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})

    def translate(self, texts: Iterable[str], target: str | None = None, source: str | None = None, **options: Any) -> list[str]:
        """The translations, in order, of any number of texts: several requests ask for many. `options`: other fields of a request, such
        as tags, glossary or format; a list of prefixes has one for each text."""
        if isinstance(texts, str | bytes):
            raise TypeError("texts wants a list of texts, not one text; write [text]")
        texts, made = list(texts), list[str]()
        asked = {"target": target, "source": source, **options}
        body, prefix = {name: value for name, value in asked.items() if value is not None}, options.get("prefix")
        prefixes = list(prefix) if isinstance(prefix, list | tuple) else None
        if prefixes is not None and len(prefixes) != len(texts):
            raise ValueError(f"there are {len(prefixes)} prefixes for {len(texts)} texts; give one for each, '' for none")
        for first in range(0, len(texts), PER_REQUEST):
            some = slice(first, first + PER_REQUEST)
            own = {} if prefixes is None else {"prefix": prefixes[some]}
            answer = self.call("POST", "/api/v1/translate", {**body, **own, "text": texts[some]})
            made += [each["text"] for each in answer["results"]]
        return made

    def models(self) -> list[dict[str, Any]]:
        """What the server has: ids, languages, tags, scores."""
        return list(self.call("GET", "/api/v1/models")["models"])

    def call(self, method: str, route: str, body: Any = None) -> Any:
        """Return the JSON that a route answers with, or raise a ServerError with the server's own words."""
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + route, content, self._headers, method=method)
        try:
            with _ask(request, timeout=self.timeout) as answer:
                return json.loads(answer.read(LARGEST_ANSWER))
        except urllib.error.HTTPError as error:
            with error:
                told = _explain(error.read(1 << 16)) or f"the server answered {error.code}"
            moved = error.headers.get("Location")
            told = f"{self.address} says that it has moved to {moved}; give that address" if moved else told
            raise ServerError(told, error.code) from None
        except ValueError:
            raise ServerError(f"{self.address} answered with something that is no JSON; is it a server of limelight?") from None
        except (OSError, http.client.HTTPException) as error:
            raise ServerError(f"{self.address} cannot be reached ({error}); does limelight serve run there?") from None


def _explain(body: bytes) -> str | None:
    """The message and the hint of a refusal."""
    try:
        told = json.loads(body)["error"]
        return "; ".join(filter(None, (told["message"], told.get("hint"))))
    except (ValueError, KeyError, TypeError):
        return None
