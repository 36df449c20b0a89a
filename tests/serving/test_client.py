"""The client of our own API, against a server in a process of this machine."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from labelled import Serving, labelled, loaded, serving

from limelight import Client
from limelight.client import ServerError

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with loaded() as translator, serving(labelled(translator, ("en", "de"))) as found:
        yield found


@pytest.fixture
def client(server: Serving) -> Client:
    return Client(str(server.client.base_url))


def test_texts_are_translated_in_order(client: Client) -> None:
    assert client.translate(["seven", "nine one"], target="de") == ["sieben", "neun eins"]
    assert client.models()[0]["target"] == "de"


def test_any_number_of_texts_goes_with_one_call(client: Client) -> None:
    texts = [("one", "two", "three")[at % 3] for at in range(300)]
    assert client.translate(texts) == [{"one": "eins", "two": "zwei", "three": "drei"}[text] for text in texts]
    assert client.translate([]) == []
    prefixed = client.translate(texts, prefix=["zwei" if at == 200 else "" for at in range(300)])
    assert prefixed[200].startswith("zwei") and prefixed[199] == "zwei" and prefixed[201] == "eins"
    assert client.translate(iter(["two", "three"]), prefix=("zwei", "")) == ["zwei", "drei"]
    with pytest.raises(ValueError, match="2 prefixes for 300 texts"):
        client.translate(texts, prefix=["zwei", ""])


def test_a_refusal_is_told_in_the_words_of_the_server(client: Client) -> None:
    with pytest.raises(ServerError, match="these languages; there are models from en to de") as refused:
        client.translate(["seven"], target="it")
    assert refused.value.status == 400
    with pytest.raises(ServerError) as refused:
        client.call("GET", "/api/v1/nothing")
    assert refused.value.status == 404


def test_a_key_goes_to_nobody_whom_the_server_names() -> None:
    asked = list[tuple[str, str | None]]()

    class Elsewhere(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append((self.path, self.headers["Authorization"]))
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_port}/stolen")  # type: ignore[attr-defined]
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Elsewhere) as listening:
        Thread(target=listening.serve_forever, daemon=True).start()
        with pytest.raises(ServerError, match=r"has moved to http://localhost:\d+/stolen; give that address") as refused:
            Client(f"http://127.0.0.1:{listening.server_port}", key="secret").translate(["seven"])
        listening.shutdown()
    assert refused.value.status == 302 and asked == [("/api/v1/translate", "Bearer secret")]


def test_where_no_server_is_the_fix_is_told() -> None:
    with pytest.raises(ServerError, match="does limelight serve run there") as refused:
        Client("http://127.0.0.1:9", timeout=2).translate(["seven"])
    assert refused.value.status == 0
    with pytest.raises(TypeError, match="write \\[text\\]"):
        Client().translate("seven")
    with pytest.raises(ValueError, match="no address of a server"):
        Client("file:///etc/passwd")
