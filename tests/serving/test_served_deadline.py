"""A deadline is a deadline: after its 504 a request costs nothing more, whatever it asked for and by whichever route.

The server runs in a thread of this process, so the time that this process spends is what the server spends. How busy the machine is
does not matter to it.
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import torch
from native_server import BUNDLE, Running, running

from limelight.decoding.config import SearchSettings
from limelight.engines.torch import TorchEngine, specials_of
from limelight.errors import DeadlineError
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.serving.queue.models import Models
from limelight.serving.queue.observer import NullObserver
from limelight.serving.queue.served_model import ServedModel
from limelight.serving.queue.service import Service, TranslateOptions
from limelight.serving.queue.work import Deadline
from limelight.serving.settings import ServeSettings
from limelight.translator import Translator

pytestmark = pytest.mark.process

FLAG = "\U0001f1e9\U0001f1ea"  # a model without marks has to write it piece by piece, which only a second search does
KEPT = f"one {FLAG * 6}"  # 49 pieces that must occur
SECONDS = 0.6  # that a request has
SETTLING, WATCHED, QUIET = 0.5, 1.0, 0.1  # seconds: after an answer, looked at after that, of work in it

Ask = Callable[[httpx.Client], httpx.Response]


@pytest.fixture(scope="module")
def models() -> Iterator[Models]:
    translator = Translator.load(BUNDLE, threads=1)
    translator.stand_by()
    translator.translate([KEPT])
    models = Models([ServedModel("en-de", translator, speed=1e6)])
    yield models
    models.close()


@pytest.fixture(scope="module")
def slow(models: Models) -> Iterator[Models]:
    """Random weights never come to an end by themselves, and there are so many that a search takes seconds."""
    known = models.all[0].translator
    config = ModelConfig.preset("small", known.settings.model.vocab_size, decoder_layers=6, max_length=256)
    torch.manual_seed(1)
    engine = TorchEngine(Transformer(config).eval(), specials_of(config))
    translator = Translator(engine, known.settings.changed(model=config), *known.tokenizers)
    translator.stand_by()
    models = Models([ServedModel("en-de", translator, speed=1e6)])
    yield models
    models.close()


@pytest.fixture(scope="module")
def server(slow: Models) -> Iterator[Running]:
    with running(slow, queue={"timeout_seconds": SECONDS}) as server:
        yield server


def texts(count: int) -> list[str]:
    return [f"{KEPT} {number}" for number in range(count)]


def native(**more: Any) -> Ask:
    return lambda client: client.post("/api/v1/translate", json={"text": texts(8), "beam": 16, **more})


def page() -> str:
    return "".join(f"<p>{text}</p>" for text in texts(8))


ASKED: dict[str, Ask] = {
    "native": native(timeout=0.3),
    "native with all the server's time": native(),
    "html": native(text=[page()], format="html", timeout=0.3),
    "trace": lambda client: client.post("/api/v1/trace", json={"source": "seven " * 60, "beam": 16}),
    "libretranslate": lambda client: client.post("/translate", json={"q": texts(8), "source": "en", "target": "de", "alternatives": 8}),
    "libretranslate, a file": lambda client: client.post(
        "/translate_file",
        data={"source": "en", "target": "de"},
        files={"file": ("many.txt", "\n\n".join(texts(8)).encode(), "text/plain")},
    ),
    "deepl": lambda client: client.post("/v2/translate", json={"text": texts(8), "target_lang": "DE"}),
}


def work_after(client: httpx.Client, ask: Ask) -> tuple[httpx.Response, float]:
    """The answer, and the seconds of work in the second that begins half a second after it."""
    answer = ask(client)
    time.sleep(SETTLING)
    begin = time.process_time()
    time.sleep(WATCHED)
    return answer, time.process_time() - begin


@pytest.mark.parametrize("route", ASKED)
def test_half_a_second_after_a_504_nothing_is_worked_on(server: Running, route: str) -> None:
    answer, spent = work_after(server.client, ASKED[route])
    assert answer.status_code == 504, answer.text[:200]
    assert spent < QUIET


def test_a_stream_that_is_late_says_so_and_ends(server: Running) -> None:
    answer, spent = work_after(server.client, native(stream=True, timeout=0.4))
    assert answer.status_code == 504 or '"code": "late"' in answer.text
    assert spent < QUIET


def test_a_client_that_leaves_takes_its_search_along(server: Running) -> None:
    def leaves(client: httpx.Client) -> httpx.Response:
        with pytest.raises(httpx.ReadTimeout):
            client.post("/api/v1/translate", json={"text": texts(8), "beam": 16}, timeout=0.25)
        return httpx.Response(200)

    assert work_after(server.client, leaves)[1] < QUIET


def test_a_late_answer_says_what_the_limit_was_and_what_helps(server: Running) -> None:
    told = native(timeout=0.3)(server.client).json()["error"]
    assert told["code"] == "late" and told["message"].endswith("after 0.3 s, the time that the request had")
    assert "timeout" in told["hint"]


def test_sixty_flags_are_not_searched_for_and_the_answer_says_unprotected(models: Models) -> None:
    """538 bytes that would bind 480 pieces of a translation; with so wide a beam that is most of a minute."""
    with running(models) as server:
        body = {"text": "A " + FLAG * 60, "beam": 16, "segment": False, "timeout": 30}
        assert len(json.dumps(body, ensure_ascii=False).encode()) < 600
        begin = time.process_time()
        answer = server.post("translate", body)
        assert time.process_time() - begin < 8
    result = answer.json()["results"][0]
    assert not result["protected"] and "unprotected" in [each["code"] for each in result["warnings"]]


def test_in_a_batch_of_several_requests_those_with_time_get_the_same_answer(models: Models) -> None:
    """One of two has no time; both wait in the same queue, for the same search."""
    plain = models.all[0].translator.translate([KEPT], segment=True)[0]

    async def both() -> list[Any]:
        service = Service(models, ServeSettings(), NullObserver())
        options = TranslateOptions(models.all[0])
        try:
            late = service.translate(texts(20), TranslateOptions(models.all[0], deadline=Deadline(0.2)))
            return await asyncio.gather(late, service.translate([KEPT], options), return_exceptions=True)
        finally:
            service.batcher.close()

    late, made = asyncio.run(both())
    assert getattr(late, "status", None) == 504
    assert (made[0].text, made[0].score, made[0].warnings) == (plain.text, plain.score, plain.warnings)


def test_a_deadline_that_is_not_reached_changes_nothing(models: Models) -> None:
    translator, some = models.all[0].translator, [KEPT, "one two 3", "seventy-one", f"a {FLAG}", ""]
    for search in (SearchSettings(), SearchSettings(beam=1), SearchSettings(beam=6, nbest=3)):
        with_one = translator.translate(some, search, timeout=1000, align=True)
        assert with_one == translator.translate(some, search, align=True)


def test_python_has_a_timeout_too(models: Models) -> None:
    begin = time.process_time()
    with pytest.raises(DeadlineError, match=r"in 0\.2 s; give it more time"):
        models.all[0].translator.translate(texts(200), SearchSettings(beam=16), timeout=0.2)
    assert time.process_time() - begin < 1.5


def test_reading_ends_too(models: Models) -> None:
    """Cutting into sentences and looking for what must survive is work as well: a megabyte of it, read by a thread."""
    over = threading.Event()
    over.set()
    with pytest.raises(DeadlineError, match="not even read"):
        models.all[0].translator.plan(["one. " * 200_000], is_over=over.is_set)


def test_terms_times_characters_are_counted_before_they_are_looked_for(models: Models) -> None:
    with running(models, limits={"glossary_work": 1_000}) as server:
        terms = {f"term{number}": "x" for number in range(100)}
        assert server.post("translate", {"text": "one two", "glossary": terms}).status_code == 200
        refused = server.post("translate", {"text": "one two three", "glossary": terms})
    assert refused.status_code == 413 and "terms times characters" in refused.json()["error"]["message"]
