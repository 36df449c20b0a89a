"""The lighting desk over HTTP: the numbers of the Python trace, kept for its owner, within bounds, and nothing of it anywhere else."""

import asyncio
import base64
import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from native_server import BUNDLE, Running, running, stored

from limelight.errors import LengthError
from limelight.inspection.head_names import KINDS
from limelight.inspection.trace import Trace
from limelight.inspection.tracing.live_trace import LiveTrace
from limelight.inspection.tracing.target import no_numbers
from limelight.inspection.wire.trace_json import as_json, from_json
from limelight.serving.access.keys import Keys
from limelight.serving.desk import desk as desk_routes
from limelight.serving.desk import responses, trace_pool
from limelight.serving.desk.importance import _as_ids
from limelight.serving.desk.requests import TraceRequest
from limelight.serving.desk.trace_pool import SECONDS, TraceInputs, new_name
from limelight.serving.queue.models import Models, load
from limelight.serving.queue.served_model import ServedModel
from limelight.serving.refusals import NotFound
from limelight.translator import Translator

pytestmark = pytest.mark.process

TEXT = "twenty-one"


@pytest.fixture(scope="module")
def models() -> Iterator[Models]:
    made = stored(("en-de", "again"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(models: Models) -> Iterator[Running]:
    with running(models, desk={"jobs": 3, "sentences": 4, "answer_bytes": 50_000}) as made:
        yield made


@pytest.fixture(scope="module")
def python(models: Models) -> Trace:
    return models.all[0].translator.trace(TEXT)


@pytest.fixture(scope="module")
def told(server: Running) -> dict[str, Any]:
    response = server.post("trace", {"source": TEXT})
    assert response.status_code == 200
    value: dict[str, Any] = response.json()
    return value


def refused(response: httpx.Response, status: int = 400) -> dict[str, Any]:
    assert response.status_code == status, response.text[:300]
    error: dict[str, Any] = response.json()["error"]
    return error


def without_times(value: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in value.items() if name not in ("timing_ms", "trace_id")}


def test_where_translating_gives_another_text_the_trace_says_which_and_why(server: Running) -> None:
    """The desk shows what a model does by itself; the page protects, and searches again what loops. They must not disagree in silence."""
    text = "three %s one"
    page = server.post("translate", {"text": text}).json()["results"][0]
    trace = server.post("trace", {"source": text}).json()
    responses.TraceAnswer.model_validate(trace)
    assert "%s" in page["text"] and "%s" not in trace["target"]["text"]
    assert trace["translation"] == {"text": page["text"], "warnings": page["warnings"]}
    other = server.post("trace", {"source": text, "target": page["text"]}).json()
    same = server.post("trace", {"source": "three seven one"}).json()
    changed = server.post("trace", {"source": text, "interventions": {"gates": {"cross.1.0": 0.5}}}).json()
    assert not any("translation" in each for each in (other, same, changed))


def test_every_number_is_that_of_the_trace_in_python(told: dict[str, Any], python: Trace) -> None:
    responses.TraceAnswer.model_validate(told)
    assert without_times(told) == without_times(json.loads(json.dumps(as_json(python))))
    weights = np.frombuffer(base64.b64decode(told["attn"]["cross"]["data"]), np.uint8).reshape(told["attn"]["cross"]["shape"])
    np.testing.assert_allclose(weights / 255, python.attention["cross"], atol=1 / 510 + 1e-9)
    assert told["target"]["text"] == python.target.text and told["verified"] is True
    assert told["target"]["logp"] == pytest.approx(python.target.logp, abs=1e-4)
    back = from_json(told)
    assert back.target.tokens[0].piece == python.target.tokens[0].piece


def test_an_answer_is_compressed_for_those_who_take_it(server: Running) -> None:
    body, raw = {"source": TEXT}, {"Content-Type": "application/json"}
    packed = server.client.post("/api/v1/trace", json=body, headers={"Accept-Encoding": "gzip"})
    plain = server.client.post("/api/v1/trace", content=json.dumps(body), headers={**raw, "Accept-Encoding": "gzip;q=0"})
    assert packed.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 2
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
    assert without_times(packed.json()) == without_times(plain.json())
    assert packed.headers["cache-control"] == "no-store" and "sandbox" in packed.headers["content-security-policy"]


def test_stages_come_later_by_the_name_of_the_trace(server: Running, told: dict[str, Any], python: Trace) -> None:
    where = f"/api/v1/trace/{told['trace_id']}"
    names = "enc.0.scores,dec.1.cross.q,dec.0.self.masked"
    for query in (f"include=stages&stages={names}&encoding=f16", f"include={names}", f"stages={names}"):
        found = server.client.get(f"{where}?{query}").json()
        responses.TraceAnswer.model_validate(found)
        assert set(found["stages"]) == set(names.split(",")) and "attn" not in found
        assert found["trace_id"] == told["trace_id"] and found["target"]["text"] == told["target"]["text"]
        for name, array in found["stages"].items():
            assert array["enc"] == "f16"
            got = np.frombuffer(base64.b64decode(array["data"]), "<f2").reshape(array["shape"])
            np.testing.assert_allclose(got.astype(np.float32), python[name], rtol=1e-3, atol=1e-3)
    some = server.client.get(f"{where}?include=attn,scores&layers=1&heads=0,2&encoding=f32").json()
    assert some["attn"]["enc"]["shape"][:2] == [1, 2] and "dec.1.cross.scaled" in some["stages"]
    assert not any(name.startswith(("enc.0", "dec.0")) for name in some["stages"])


def test_a_trace_asked_for_again_is_the_same(server: Running, told: dict[str, Any]) -> None:
    again = server.client.get(f"/api/v1/trace/{told['trace_id']}").json()
    assert without_times(again) == without_times(told)


def test_changes_are_made_and_judged_and_the_unchanged_has_a_name_of_its_own(server: Running, models: Models) -> None:
    gates = {"*": 1.0, "cross.*.*": 0.0, "cross.1.1": 0.5}
    changes = {"gates": gates, "mask_source": [2], "pin": [{"step": 0, "source": 1, "layers": [1], "strength": 0.5}]}
    body = {"source": TEXT, "interventions": {**changes, "positions": "shift:3", "attn_temperature": 2}}
    found = server.post("trace", body).json()
    responses.TraceAnswer.model_validate(found)
    assert list(found["interventions"]["gates"]) == list(gates), "the later win, so the order counts"
    assert found["interventions"]["pin"][0]["layers"] == [1] and found["source"]["masked"] == [2]
    baseline = found["baseline"]
    assert baseline["delta_logp"] < 0 and sum(baseline["deltas"]) == pytest.approx(baseline["delta_logp"], abs=0.01)
    plain = server.client.get(f"/api/v1/trace/{baseline['trace_id']}").json()
    assert baseline["tokens"] == [token["piece"] for token in plain["target"]["tokens"]]
    assert plain["target"]["text"] == baseline["text"] and "interventions" not in plain
    again = server.client.get(f"/api/v1/trace/{found['trace_id']}").json()
    assert again["baseline"] == baseline and again["interventions"] == found["interventions"]


def test_prefix_target_search_and_model_are_as_asked_for(server: Running, models: Models) -> None:
    known = server.post("trace", {"source": "one two", "target": "drei"}).json()
    assert known["target"]["text"] == "drei" and known["beam"] is None
    ids = [token["id"] for token in known["target"]["tokens"][:-1]]
    pieces = [token["piece"] for token in known["target"]["tokens"][:-1]]
    for prefix in (ids, pieces):
        assert server.post("trace", {"source": "one two", "prefix": prefix}).json()["target"]["text"].startswith("drei")
    wide = server.post("trace", {"source": "one two", "beam": 2, "nbest": 2, "topk": 3, "model": "again"}).json()
    assert (wide["beam"]["size"], len(wide["nbest"]), wide["model"]["id"]) == (2, 2, "again")
    assert all(len(token["topk"]) == 3 for token in wide["target"]["tokens"])
    cut = server.post("trace", {"source": "one two three", "max_len": 2, "length_penalty": 0, "model": "default"}).json()
    assert cut["target"]["finish"] == "length" and len(cut["target"]["tokens"]) == 2 and cut["model"]["id"] == "en-de"


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "source"),
        ({"source": ""}, "source"),
        ({"source": "  "}, "blank"),
        ({"source": "a", "sorce": 1}, "did you mean `source`"),
        ({"source": "a", "layers": [300]}, "layers.0"),
        ({"source": "a", "layers": [2]}, "layer 2"),
        ({"source": "a", "heads": []}, "heads"),
        ({"source": "a", "include": ["secret"]}, "such part"),
        ({"source": "a", "encoding": "f64"}, "encoding"),
        ({"source": "a", "beam": 17}, "beam"),
        ({"source": "a", "topk": 33}, "topk"),
        ({"source": "a", "max_len": 257}, "max_len"),
        ({"source": "a", "prefix": [999_999]}, "no piece"),
        ({"source": "a", "prefix": [True]}, "prefix.0"),
        ({"source": "a", "interventions": {"gates": {"cross.0.0": 1.5}}}, "interventions.gates"),
        ({"source": "a", "interventions": {"gates": {"secret": 1}}}, "interventions.gates"),
        ({"source": "a", "interventions": {"gates": {"enc.7.0": 0}}}, "enc.7.0 is not there"),
        ({"source": "a", "interventions": {"secret": 1}}, "interventions: there is no such key"),
        ({"source": "a", "interventions": {"pin": [{"step": -1, "source": 0}]}}, "interventions.pin.0.step"),
        ({"source": "a", "interventions": {"mask_source": [77]}}, "77"),
        ({"source": "a", "interventions": {"positions": "upside down"}}, "interventions.positions"),
        (
            {"source": "a", "interventions": {"mask_source": [0], "pin": [{"step": 0, "source": 0}]}},
            "hidden and pinned",
        ),
        ({"source": "a", "interventions": {"attn_temperature": 0}}, "interventions.attn_temperature"),
    ],
)
def test_what_is_wrong_is_named(server: Running, body: dict[str, Any], named: str) -> None:
    error = refused(server.post("trace", body))
    assert named in error["message"] and "secret" not in error["message"].replace("secret: there is no such part", "")


def test_too_much_is_said_to_be_too_long(server: Running, told: dict[str, Any]) -> None:
    error = refused(server.post("trace", {"source": "one two " * 100}), 413)
    assert error["code"] == "too_long" and "pieces" in error["message"]
    many = server.client.get(f"/api/v1/trace/{told['trace_id']}?include=scores,qkv,ffn,resid,logits&encoding=f32")
    assert "layers" in refused(many, 413)["hint"]
    assert refused(server.post("export", {"trace_id": told["trace_id"], "format": "npz"}), 413)["code"] == "too_long"
    assert refused(server.post("trace", {"source": "x" * 6_000}), 413)["code"] == "too_large"


def test_queries_are_checked_too(server: Running, told: dict[str, Any]) -> None:
    where = f"/api/v1/trace/{told['trace_id']}"
    for query in (
        "layers=a",
        "layers=",
        "heads=1,",
        "encoding=f64",
        "include=%00",
        "stages=A",
        "layers=9",
        "include=no",
    ):
        refused(server.client.get(f"{where}?{query}"))
    assert "kept" not in refused(server.client.get("/api/v1/trace/t_nobody"), 404)["message"]


@pytest.mark.parametrize(("format", "begins"), [("svg", b"<"), ("png", b"\x89PNG"), ("json", b"{"), ("npz", b"PK")])
def test_a_trace_becomes_a_file(models: Models, python: Trace, format: str, begins: bytes) -> None:
    with running(models) as server:
        name = server.post("trace", {"source": TEXT}).json()["trace_id"]
        response = server.post("export", {"trace_id": name, "format": format})
    assert response.status_code == 200 and response.content.startswith(begins)
    assert response.headers["content-disposition"] == f'attachment; filename="limelight-trace.{format}"'
    assert "sandbox" in response.headers["content-security-policy"]
    if format == "npz":
        np.testing.assert_allclose(np.load(BytesIO(response.content))["enc.0.scores"], python["enc.0.scores"], atol=1e-5)
    if format == "json":
        assert from_json(response.json()).target.text == python.target.text


def test_a_page_as_a_file_has_its_view_or_says_that_it_was_not_built(
    server: Running, told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "desk.html"
    page.write_bytes(b'<!doctype html><script type="application/json" id="trace">null</script>')
    from_page = "limelight.serving.desk.files.page_with"
    asked = {"trace_id": told["trace_id"], "format": "html", "view": "/x?k=cross&l=1"}
    real: Callable[..., bytes] = __import__("limelight.inspection.saving.page", fromlist=["page_with"]).page_with
    monkeypatch.setattr(from_page, lambda values: real(values, page))
    found = server.post("export", asked).text
    assert "/x?k=cross\\u0026l=1" in found and told["target"]["text"] in found
    page.unlink()
    assert "not built" in refused(server.post("export", asked), 404)["message"]
    monkeypatch.setattr("limelight.inspection.drawing.svg.INSTALLED", False)
    error = refused(server.post("export", {"trace_id": told["trace_id"], "format": "png"}), 404)
    assert "PNG" in error["message"] and "limelight[pictures]" in error["hint"]


def test_what_a_caller_traced_is_for_that_caller(models: Models, tmp_path: Path) -> None:
    place = tmp_path / "keys.toml"
    anna, berta = (Keys.add_key(place, name) for name in ("anna", "berta"))
    with running(models, Keys.load(place), keys=place) as server:

        def ask(key: str, method: str, path: str, **more: Any) -> httpx.Response:
            return server.client.request(method, f"/api/v1/{path}", headers={"X-API-Key": key}, **more)

        name = ask(anna, "POST", "trace", json={"source": TEXT}).json()["trace_id"]
        assert ask(anna, "GET", f"trace/{name}?include=tokens").status_code == 200
        refused(ask(berta, "GET", f"trace/{name}"), 404)
        refused(server.client.get(f"/api/v1/trace/{name}"), 401)
        refused(server.post("importance", {"sentences": ["one"]}), 401)
        refused(ask(berta, "POST", "export", json={"trace_id": name, "format": "json"}), 404)
        for path in ("probes", "probes/0/1"):
            refused(server.client.get(f"/api/v1/{path}"), 401)


def test_a_trace_counts_as_a_translation_does(models: Models, tmp_path: Path) -> None:
    place = tmp_path / "keys.toml"
    key = Keys.add_key(place, "anna")
    place.write_bytes(place.read_bytes() + b"characters_per_month = 45\n")
    with running(models, Keys.load(place), keys=place) as server:
        server.client.headers["X-API-Key"] = key
        found = server.post("trace", {"source": TEXT, "target": "eins"}).json()
        assert server.client.get("/v2/usage").json()["character_count"] == len(TEXT) + 4
        assert server.client.get(f"/api/v1/trace/{found['trace_id']}").status_code == 200
        assert server.post("importance", {"sentences": ["one", "two"]}).status_code == 200
        assert server.client.get("/v2/usage").json()["character_count"] == 2 * (len(TEXT) + 4) + 6
        refused(server.post("trace", {"source": "one", "interventions": {"gates": {"enc.7.0": 0}}}))
        assert server.client.get("/v2/usage").json()["character_count"] == 2 * (len(TEXT) + 4) + 6, "nothing came of it"
        refused(server.post("trace", {"source": "one two three four"}), 456)


class Slow:
    """Traces that begin, and end when they are let."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go = 0, threading.Event()
        real = Translator.trace

        def slow(translator: Translator, *given: Any, **more: Any) -> Any:
            self.begun += 1
            assert self.go.wait(20)
            return real(translator, *given, **more)

        monkeypatch.setattr(Translator, "trace", slow)


def eventually(true: Callable[[], bool]) -> None:
    begin = time.monotonic()
    while not true():
        assert time.monotonic() - begin < 10, "it never happened"
        time.sleep(0.01)


def test_few_are_made_at_once_few_wait_and_more_are_refused_at_once(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    found: list[int] = []
    with running(models, desk={"at_once": 2, "waiting": 3}) as server:

        def ask() -> None:
            with httpx.Client(base_url=server.url, timeout=30) as client:
                found.append(client.post("/api/v1/trace", json={"source": "one"}).status_code)

        threads = [threading.Thread(target=ask) for _ in range(5)]
        try:
            for thread in threads:
                thread.start()
            eventually(lambda: server.service.under_way.count == 5 and slow.begun == 2)
            time.sleep(0.2)  # they have come; now they are all in the queue too
            response = server.post("trace", {"source": "one"})
            assert refused(response, 429)["code"] == "too_many" and int(response.headers["retry-after"]) >= 1
            assert slow.begun == 2 and server.post("translate", {"text": "one"}).status_code == 200
        finally:
            slow.go.set()
            for thread in threads:
                thread.join()
    assert found == [200] * 5


def test_who_leaves_is_not_traced_and_who_waits_too_long_is_told(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    with running(models, desk={"at_once": 1, "waiting": 8}, queue={"timeout_seconds": 1.0}) as server:
        try:
            for _ in range(2):  # the first is being made, the second waits; both leave
                with pytest.raises(httpx.ReadTimeout):
                    server.client.post("/api/v1/trace", json={"source": "one"}, timeout=0.3)
            assert slow.begun == 1
            begin = time.monotonic()
            assert refused(server.post("trace", {"source": "one"}), 504)["code"] == "late"
            assert time.monotonic() - begin < 5
        finally:
            slow.go.set()
        eventually(lambda: server.post("trace", {"source": "two"}).status_code == 200)
        assert slow.begun == 2, "of those who left, the one that had begun; and the last"


def test_what_still_runs_counts_also_when_its_client_has_left(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    with running(models, desk={"at_once": 1, "waiting": 0}, queue={"timeout_seconds": 2.0}) as server:
        try:
            with pytest.raises(httpx.ReadTimeout):
                server.client.post("/api/v1/trace", json={"source": "one"}, timeout=0.3)
            eventually(lambda: server.service.under_way.count == 0)
            assert refused(server.post("trace", {"source": "one"}), 429)["code"] == "too_many"
        finally:
            slow.go.set()
        eventually(lambda: server.post("trace", {"source": "two"}).status_code == 200)


def test_scores_that_are_no_numbers_are_told_as_such(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(translator: Translator, *given: Any, **more: Any) -> Any:
        raise no_numbers()

    monkeypatch.setattr(Translator, "trace", broken)
    assert refused(server.post("trace", {"source": "one"}), 500)["message"] == "the model's scores are no numbers"


def test_callers_without_a_name_have_four_times_the_room_together(models: Models) -> None:
    inputs = TraceInputs(2)
    for number in range(9):
        inputs.keep("", f"t{number}", models.all[0], TraceRequest(source="x"))
    assert len(inputs) == 8 and inputs.find("t1", "")
    with pytest.raises(NotFound) as refusal:
        inputs.find("t0", "")
    assert "the last 8 are known" in str(refusal.value.hint)


def test_inputs_are_kept_for_a_while_and_the_last_of_each_caller(models: Models) -> None:
    now = [100.0]
    inputs, served = TraceInputs(3, lambda: now[0]), models.all[0]
    names = [new_name() for _ in range(4)]
    for name in names[:3]:
        inputs.keep("anna", name, served, TraceRequest(source=name))
    inputs.find(names[0], "anna")  # used last
    inputs.keep("anna", names[3], served, TraceRequest(source="d"))
    inputs.keep("berta", "b", served, TraceRequest(source="b"))
    assert inputs.find(names[0], "anna").asked.source == names[0] and len(inputs) == 4
    for name, owner in ((names[1], "anna"), (names[0], "berta"), ("b", "anna"), ("b", "")):
        with pytest.raises(NotFound):
            inputs.find(name, owner)
    now[0] += SECONDS
    with pytest.raises(NotFound):
        inputs.find(names[0], "anna")
    inputs.keep("clara", "c", served, TraceRequest(source="c"))
    assert len(inputs) == 1


def test_what_was_traced_is_forgotten_in_time_whatever_comes_after(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    kept = object.__new__(desk_routes.Desk)
    kept.inputs, kept._forgetting = TraceInputs(3, lambda: now[0]), None
    monkeypatch.setattr(desk_routes, "LOOKS", 0.01)

    async def work() -> None:
        kept.inputs.keep("anna", "t", models.all[0], TraceRequest(source="one"))
        kept._forget_in_time()
        await asyncio.sleep(0.05)
        assert len(kept.inputs) == 1 and kept._forgetting is not None
        now[0] = SECONDS + 1
        await asyncio.sleep(0.05)
        assert len(kept.inputs) == 0 and kept._forgetting is None

    asyncio.run(work())


def test_all_callers_together_have_a_bound(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_pool, "MOST", 5)
    inputs = TraceInputs(4)
    for owner in "abcd":
        for number in range(4):
            inputs.keep(owner, f"{owner}{number}", models.all[0], TraceRequest(source="x"))
    assert len(inputs) == 5 and inputs.find("d3", "d")


def events_in(response: httpx.Response) -> list[tuple[str, dict[str, Any]]]:
    assert response.status_code == 200 and response.headers["content-type"].startswith("text/event-stream")
    blocks = [block.split("\n") for block in response.text.split("\n\n") if block and not block.startswith(":")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]


def test_heads_are_ranked_with_progress(server: Running, models: Models) -> None:
    body = {"sentences": ["twenty-one", "three hundred"]}
    *progress, (named, result), (last, told) = events_in(server.post("importance", body))
    assert {name for name, _ in progress} == {"progress"} and (named, last) == ("result", "done")
    for name, data in (*progress, (named, result), (last, told)):
        responses.RankingEvent.model_validate({"event": name, "data": json.dumps(data)})
    done = [each["done"] for _, each in progress]
    assert done == sorted(set(done)) and done[0] == 0 and done[-1] == progress[0][1]["total"] > 0
    responses.ImportanceAnswer.model_validate(result)
    heads = {head["id"]: head["delta_logp"] for head in result["heads"]}
    assert len(heads) == 3 * 2 * 4 and (result["model"], result["sentences"], result["skipped"]) == ("en-de", 2, 0)
    # Muting one head is what a trace of its own translation says of it.
    translator = models.all[0].translator
    alone = [translator.trace(text, gates={"cross.1.1": 0.0}).baseline for text in body["sentences"]]
    assert heads["cross.1.1"] == pytest.approx(sum(each.delta_logp for each in alone if each) / 2, abs=1e-3)
    assert events_in(server.post("importance", body))[0] == ("result", result), "what was found is told at once"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"sentences": [], "n": 1}, 400),
        ({"sentences": ["one"], "set": "valid"}, 400),
        ({"set": "test"}, 400),
        ({"set": "valid"}, 404),
        ({"sentences": ["one"] * 5}, 413),
        ({"sentences": ["one"], "mode": "solo"}, 400),
    ],
)
def test_a_ranking_that_cannot_be_is_refused(server: Running, body: dict[str, Any], status: int) -> None:
    refused(server.post("importance", body), status)


def test_a_ranking_that_fails_says_why(server: Running) -> None:
    assert "sentence 1" in refused(server.post("importance", {"sentences": ["one", " "]}), 400)["message"]


def test_pairs_of_a_set_that_do_not_fit_are_left_out_and_sentences_of_a_caller_are_named(models: Models) -> None:
    translator, long = models.all[0].translator, "nine " * 40
    sources = ("one", long, "two", "four")
    assert len(_as_ids(translator, sources, ("eins", "neun", "neun " * 40, "vier"), 20)) == 2
    with pytest.raises(LengthError, match=r"sentence 1 has \d+ pieces, sentence 3 has 0 pieces, and one takes 1 to 20"):
        _as_ids(translator, ("one", long, "two", " "), None, 20)


def test_probes_of_a_run_are_listed_and_shown(models: Models, python: Trace, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "bundle").parent.mkdir()
    (run / "bundle").symlink_to(BUNDLE)
    for number, steps in ((0, (100, 2000)), (3, (100,))):
        (run / "probes" / f"{number:02d}").mkdir(parents=True)
        for step in steps:
            content = gzip.compress(json.dumps(as_json(python)).encode())
            (run / "probes" / f"{number:02d}" / f"{step}.json.gz").write_bytes(content)
    (run / "probes" / "04").mkdir()
    (run / "probes" / "04" / "7.json.gz").write_bytes(b"damaged")
    (run / "probes" / "notes.txt").write_bytes(b"x")
    own = load([f"probed={run}"], threads=1)
    try:
        with running(Models([*own.all, models.all[0]])) as server:
            found = server.client.get("/api/v1/probes").json()
            responses.ProbesAnswer.model_validate(found)
            assert found == {
                "model": "probed",
                "probes": [{"n": 0, "source": TEXT, "steps": [100, 2000]}, {"n": 3, "source": TEXT, "steps": [100]}],
            }
            one = server.client.get("/api/v1/probes/0/2000").json()
            responses.TraceAnswer.model_validate(one)
            assert one["attn"] == as_json(python)["attn"] and one["model"]["id"] == "probed" and one["trace_id"]
            assert server.client.get("/api/v1/probes?model=en-de").json()["probes"] == []
            for path in ("probes/0/101", "probes/1/100", "probes/0/100?model=en-de"):
                refused(server.client.get(f"/api/v1/{path}"), 404)
            refused(server.client.get("/api/v1/probes/4/7"), 500)
            refused(server.client.get("/api/v1/probes/..%2f/1"), 404)
            assert server.client.get("/api/v1/probes/a/b").status_code == 400
    finally:
        own.close()


def test_a_server_may_have_no_desk(models: Models) -> None:
    with running(models, desk={"on": False}) as server:
        refused(server.post("trace", {"source": "one"}), 404)
        assert not any("trace" in path for path in server.client.get("/openapi.json").json()["paths"])


def test_nothing_of_a_text_is_in_the_log(server: Running) -> None:
    for body in ({"source": "one canary"}, {"source": "one canary", "interventions": {"canary": 1}}):
        server.post("trace", body)
    server.post("importance", {"sentences": ["canary"]})
    line = [each for each in server.lines if each["route"] == "/api/v1/trace" and each["status"] == 200][-1]
    assert (line["characters"], line["model"]) == (10, "en-de")
    assert isinstance(line["pieces"], int) and line["pieces"] > 3
    assert not any("canary" in str(line) for line in server.lines)


def test_three_kinds_are_in_every_answer(told: dict[str, Any], models: Models) -> None:
    served: ServedModel = models.all[0]
    assert tuple(told["attn"]) == KINDS and served.run is None


def test_why_a_piece_is_there_is_told_as_in_python(server: Running, told: dict[str, Any], python: LiveTrace) -> None:
    asked = {"trace_id": told["trace_id"], "piece": 1}
    for more in ({}, {"method": "integrated"}, {"instead_of": python.target.tokens[0].piece.removeprefix("\u2581")}):
        response = server.post("why", {**asked, **more})
        assert response.status_code == 200, response.text
        answer, ours = response.json(), python.why(1, **more)
        responses.WhyAnswer.model_validate(answer, strict=True)
        assert [each["effect"] for each in answer["source"]] == pytest.approx([each.effect for each in ours.source], abs=1e-4)
        assert answer["source_share"] == pytest.approx(ours.source_share, abs=1e-4) and answer["method"] == ours.method


def test_words_left_out_are_named_where_it_is_asked_for(server: Running) -> None:
    short = server.post("trace", {"source": "four nine six", "target": "vier neun"}).json()
    asked = {"trace_id": short["trace_id"], "piece": 0}
    assert server.post("why", asked).json().get("unmatched") is None
    answer = server.post("why", {**asked, "check": True}).json()
    responses.WhyAnswer.model_validate(answer, strict=True)
    assert [(each["kind"], each["word"]) for each in answer["unmatched"]] == [("omission", "six")]


@pytest.mark.parametrize("more", [{"piece": 99}, {"piece": -1}, {"method": "magic"}, {"instead_of": ""}, {"instead_of": " "}])
def test_why_refuses_what_is_not_there(server: Running, told: dict[str, Any], more: dict[str, Any]) -> None:
    refused(server.post("why", {"trace_id": told["trace_id"], "piece": 0, **more}))
    refused(server.post("why", {"trace_id": "t_nobody", "piece": 0}), 404)
