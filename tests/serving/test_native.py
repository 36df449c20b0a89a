"""The native API against the translator itself: the same translations, in one shape, with limits and refusals that say what to do."""

import asyncio
import random
import threading
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from native_server import BUNDLE, Running, running, stored

import limelight
from limelight.bundle import BundleSettings, read
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.serving.http.error_dialects import ErrorAnswer
from limelight.serving.native import responses
from limelight.serving.native.piece_offsets import characters, locate_pieces
from limelight.serving.queue.models import Models
from limelight.serving.queue.service import TranslateOptions
from limelight.serving.queue.work import Deadline
from limelight.serving.refusals import Late
from limelight.text.normalize import STEPS, normalize

pytestmark = pytest.mark.process

TEXTS = ["one two three", "seven", "four. five six.\nnine"]


@pytest.fixture(scope="module")
def models() -> Iterator[Models]:
    made = stored(("en-de", "again"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(models: Models) -> Iterator[Running]:
    limits = {"characters": 300, "texts": 4, "alternatives": 3, "beam": 6, "terms": 2}
    with running(models, limits=limits, queue={"timeout_seconds": 20}) as made:
        yield made


def refused(server: Running, path: str, body: Any, status: int = 400) -> dict[str, str]:
    response = server.post(path, body)
    assert response.status_code == status, response.text
    ErrorAnswer.model_validate(response.json(), strict=True)
    found: dict[str, str] = response.json()["error"]
    return found


def test_translations_are_those_of_the_translator(server: Running, models: Models) -> None:
    response = server.post("translate", {"text": TEXTS, "segment": True, "align": True, "pieces": True})
    assert response.status_code == 200
    found = responses.TranslateAnswer.model_validate(response.json(), strict=False)
    expected = models.all[0].translator.translate(TEXTS, segment=True, align=True)
    assert (found.model, found.source, found.target) == ("en-de", "en", "de")
    for result, made, text in zip(found.results, expected, TEXTS, strict=True):
        assert result.text == made.text and result.finish == made.finish and result.characters == len(text)
        assert result.score == pytest.approx(made.score, abs=1e-4)
        assert [word.text for word in result.words] == [word.text for word in made.words]
        assert [piece.text for piece in result.pieces or []] == [piece.text for piece in made.pieces]
        assert result.alignment is not None and made.alignment is not None
        assert result.alignment.words == made.alignment.words


def test_one_text_gives_a_list_of_one_result(server: Running) -> None:
    found = server.post("translate", {"text": "one"}).json()
    assert [result["text"] for result in found["results"]] == ["eins"]
    assert "alignment" not in found["results"][0] and "pieces" not in found["results"][0]


def test_an_empty_text_is_nothing_to_translate(server: Running) -> None:
    result = server.post("translate", {"text": ""}).json()["results"][0]
    assert (result["text"], result["finish"], result["characters"]) == ("", "empty_input", 0)


def test_numbers_of_an_alignment_are_of_the_words_that_come_with_it(server: Running) -> None:
    source = "  two  three.\n four "
    result = server.post("translate", {"text": source, "align": True, "nbest": 1}).json()["results"][0]
    alignment = result["alignment"]
    assert alignment["source_words"] == ["two", "three.\n", "four"]
    assert alignment["target_words"] == [word for word in result["text"].split(" ") if word]
    assert alignment["words"]
    for s, t in alignment["words"]:
        assert alignment["source_words"][s] and alignment["target_words"][t]


def test_so_many_translations_come_as_are_asked_for(server: Running) -> None:
    for wanted in (1, 2, 4):
        result = server.post("translate", {"text": "one two", "nbest": wanted, "align": True}).json()["results"][0]
        assert len(result["alternatives"]) == wanted - 1
        assert all(each["words"] and each["alignment"]["target_words"] for each in result["alternatives"])
        scores = [result["score"], *(each["score"] for each in result["alternatives"])]
        assert scores == sorted(scores, reverse=True)


def test_a_wider_beam_is_taken_where_more_translations_are_wanted_than_it_has(server: Running) -> None:
    own = server.service.models.all[0].translator.settings.search
    assert own.beam == 4
    with running(server.service.models) as wide:
        result = wide.post("translate", {"text": "one two", "nbest": 6}).json()["results"][0]
    assert len(result["alternatives"]) == 5


def test_a_beam_of_one_is_greedy_search(server: Running, models: Models) -> None:
    translator = models.all[0].translator
    text = "nine hundred blue onions"
    expected = translator.translate([text], translator.settings.search.changed(beam=1), segment=True)[0]
    found = server.post("translate", {"text": text, "beam": 1}).json()["results"][0]
    assert found["text"] == expected.text and found["score"] == pytest.approx(expected.score, abs=1e-4)


def test_the_length_penalty_changes_the_score(server: Running) -> None:
    zero, two = (
        server.post("translate", {"text": "one two", "length_penalty": penalty}).json()["results"][0]["score"] for penalty in (0, 2.0)
    )
    assert zero < two < 0


def test_a_translation_begins_with_its_prefix(server: Running) -> None:
    alone = server.post("translate", {"text": "one two", "prefix": "drei"}).json()["results"][0]
    assert alone["text"].startswith("drei")
    for prefix, begins in (
        ("drei", ["drei", "drei"]),
        (["drei", "vier"], ["drei", "vier"]),
        (["", "vier"], ["eins", "vier"]),
    ):
        body = {"text": ["one two", "one"], "prefix": prefix}
        results = server.post("translate", body).json()["results"]
        assert [result["text"].split()[0] for result in results] == begins


def test_terms_of_a_glossary_are_used_or_a_warning_says_so(server: Running) -> None:
    body = {"text": "one two", "glossary": {"two": ["zwo"]}}
    result = server.post("translate", body).json()["results"][0]
    assert "zwo" in result["text"] or "terms" in [warning["code"] for warning in result["warnings"]]


@pytest.mark.parametrize(("format", "stream"), [("text", False), ("text", True), ("html", False)])
def test_a_large_answer_is_made_beside_the_event_loop_and_a_small_one_in_it(
    models: Models, monkeypatch: pytest.MonkeyPatch, format: str, stream: bool
) -> None:
    name = "result" if format == "text" else "html_result"
    make, makers = getattr(responses, name), []

    def watched(*given: Any) -> Any:
        makers.append(threading.get_ident())
        return make(*given)

    monkeypatch.setattr(responses, name, watched)
    with running(models) as server:
        asked = {"format": format, "stream": stream, "beam": 1}
        loops = {thread.ident for thread in threading.enumerate() if thread.name.endswith("(run)")}
        for text, inside in (("one", True), ("one two. " * 250, False)):
            response = server.post("translate", {"text": text, **asked})
            assert response.status_code == 200 and "eins" in response.text
            assert (makers.pop() in loops) == inside


def test_tags_of_html_stay(server: Running) -> None:
    body = {"text": ["<p>one</p><p>two <!-- three --></p>", "<meta charset=latin1>four five"], "format": "html"}
    results = server.post("translate", body).json()["results"]
    assert results[0]["text"].startswith("<p>eins</p><p>") and "<!-- three -->" in results[0]["text"]
    assert results[1]["text"].startswith("<meta charset=latin1>vier fünf")
    assert results[0]["score"] is None and results[0]["words"] == [] and results[0]["characters"] == len(body["text"][0])


def test_all_rounds_of_a_page_have_one_deadline(server: Running, models: Models) -> None:
    options = TranslateOptions(models.all[0], deadline=Deadline(1e-6))
    with pytest.raises(Late, match=r"after 1e-06 s, the time that the request had"):
        asyncio.run(server.service.translate(["one"], options))


@pytest.mark.parametrize("extra", [{"nbest": 2}, {"align": True}, {"pieces": True}, {"prefix": "ein"}, {"stream": True}])
def test_what_html_cannot_have_is_refused_and_not_left_out(server: Running, extra: dict[str, Any]) -> None:
    problem = refused(server, "translate", {"text": "<p>one</p>", "format": "html", **extra})
    assert problem["message"].startswith(next(iter(extra)))


def test_a_model_is_found_by_its_name_or_by_languages_in_any_case(server: Running) -> None:
    for asked, model in (({"model": "again"}, "again"), ({"source": "EN", "target": "de-AT"}, "en-de"), ({}, "en-de")):
        assert server.post("translate", {"text": "one", **asked}).json()["model"] == model
    assert refused(server, "translate", {"text": "one", "model": "fr-en"}, 404)["code"] == "not_found"
    refused(server, "translate", {"text": "one", "source": "fr"})
    refused(server, "translate", {"text": "one", "model": "en-de", "target": "fr"})


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "text"),
        ({"text": 5}, "text"),
        ({"text": []}, "text"),
        ({"text": ["one", None]}, "text.1"),
        ({"text": "one", "nbset": 2}, "did you mean `nbest`"),
        ({"text": "one", "nbest": 0}, "nbest"),
        ({"text": "one", "nbest": 5}, "nbest"),
        ({"text": "one", "nbest": "2"}, "nbest"),
        ({"text": "one", "nbest": True}, "nbest"),
        ({"text": "one", "nbest": 1.5}, "nbest"),
        ({"text": "one", "beam": 7}, "beam"),
        ({"text": "one", "beam": 2, "nbest": 3}, "nbest=3"),
        ({"text": "one", "length_penalty": -1}, "length_penalty"),
        ({"text": "one", "timeout": 0}, "timeout"),
        ({"text": "one", "timeout": 21}, "timeout"),
        ({"text": "one", "align": 1}, "align"),
        ({"text": "one", "format": "xml"}, "format"),
        ({"text": "one", "prefix": ["a", "b"]}, "2 prefixes for 1 texts"),
        ({"text": "one", "prefix": "ein " * 70}, "pieces"),
        ({"text": "one", "glossary": {" ": "a"}}, "glossary"),
        ({"text": "one", "glossary": {"a": []}}, "glossary"),
        ({"text": "one", "glossary": {"secret": "a\nb"}}, "glossary"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_given_is_repeated(server: Running, body: dict[str, Any], named: str) -> None:
    problem = refused(server, "translate", body)
    assert named in problem["message"]
    assert "secret" not in str(problem)


def test_all_problems_are_told_at_once(server: Running) -> None:
    message = refused(server, "translate", {"text": 1, "nbest": 0, "beam": "x", "what": 1})["message"]
    assert all(name in message for name in ("text", "nbest", "beam", "what"))


def test_a_whole_number_may_be_written_with_a_point(server: Running) -> None:
    assert len(server.post("translate", {"text": "one", "nbest": 2.0}).json()["results"][0]["alternatives"]) == 1


def test_too_much_is_said_to_be_too_large(server: Running) -> None:
    for body in ({"text": "a" * 301}, {"text": ["a"] * 5}, {"text": "a", "glossary": {"a": "b", "c": "d", "e": "f"}}):
        problem = refused(server, "translate", body, 413)
        assert problem["code"] == "too_large" and "valid" not in problem["message"]
    assert server.post("translate", {"text": "a" * 300}).status_code == 200


def test_a_page_is_told_whether_the_server_can_look_inside(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    assert server.client.get("/api/v1/models").json()["desk"] is True
    monkeypatch.setattr("limelight.serving.native.routes.has_torch", lambda: False)
    assert server.client.get("/api/v1/models").json()["desk"] is False


def test_a_deadline_that_cannot_be_kept_is_told(models: Models) -> None:
    with running(models) as server:
        long = {"text": ["one two three four five six. " * 170] * 20, "beam": 16, "timeout": 0.1}
        problem = server.post("translate", long)
    assert problem.status_code in (413, 503, 504) and problem.json()["error"]["hint"], problem.text


def test_given_translations_are_scored(server: Running, models: Models) -> None:
    expected = models.all[0].translator.score(["one two"], ["eins zwei"])[0]
    found = responses.ScoreAnswer.model_validate(server.post("score", {"source": "one two", "target": "eins zwei"}).json())
    assert found.log_prob == pytest.approx(expected.log_prob, abs=1e-4)
    assert [piece.text for piece in found.pieces] == [piece.text for piece in expected.pieces]
    assert server.post("score", {"source": "one two", "target": "acht"}).json()["log_prob"] < found.log_prob
    for body in ({"source": "", "target": "a"}, {"source": "  ", "target": "a"}, {"source": "a", "target": "é" * 200}):
        assert "pieces" in refused(server, "score", body)["message"]


def test_pieces_have_their_places_in_the_text_as_it_was_given(server: Running) -> None:
    text = " two\u00a0 thr\u00adee \U0001f600"
    found = server.post("tokenize", {"text": text}).json()
    assert found["text"] == "two three \U0001f600"
    cut = [(piece["text"], text[piece["begin"] : piece["end"]]) for piece in found["pieces"]]
    assert cut[-6:] == [
        ("▁three", "\u00a0 thr\u00adee"),
        ("▁", " "),
        ("<0xF0>", "\U0001f600"),
        ("<0x9F>", "\U0001f600"),
        ("<0x98>", "\U0001f600"),
        ("<0x80>", "\U0001f600"),
    ]
    assert server.post("tokenize", {"text": " \n", "side": "target"}).json()["pieces"] == []


def test_pieces_are_those_that_the_model_reads(models: Models) -> None:
    translator, chance = models.all[0].translator, random.Random(3)
    alphabet = "ab two \n\t\u00a0\u200b\u00ad\u0301\u0323e\u1100\u1161\u11a8한\U0001f600“”\u2028\x1c\x85\u0958日▁<0x41>ﬁ\u0344Å"
    source, steps = read(BUNDLE).source_tokenizer, translator.settings.normalization
    for _ in range(30):
        text = "".join(chance.choice(alphabet) for _ in range(chance.randint(0, 12)))
        _, pieces = locate_pieces(source, steps, text)
        assert [piece.id for piece in pieces] == translator.source_ids([text])[0], ascii(text)
        ends = [piece.end for piece in pieces]
        assert ends == sorted(ends) and all(0 <= piece.begin <= piece.end <= len(text) for piece in pieces), ascii(text)
        for some in ((), STEPS, ("nfc",), ("spaces", "quotes"), ("invisible", "nfc")):
            expected = normalize(pl.Series([text], dtype=pl.String), some).to_list()[0]
            assert "".join(each.text for each in characters(text, some)) == expected, ascii(text)


def test_models_say_what_they_are(server: Running, models: Models) -> None:
    told = responses.ModelsAnswer.model_validate(server.client.get("/api/v1/models").json())
    assert told.limits.model_dump() == {
        "characters": 300,
        "texts": 4,
        "alternatives": 3,
        "beam": 6,
        "file_bytes": 8 << 20,
    }
    found = told.models
    assert [model.id for model in found] == ["en-de", "again"]
    settings: BundleSettings = models.all[0].translator.settings
    built = sum(parameter.numel() for parameter in Transformer(ModelConfig(**settings.model.model_dump())).parameters())
    one = found[0]
    assert one.parameters == built and one.vocabulary == 345 and one.layers.encoder == 2 and one.heads == 4
    assert (one.names.source, one.names.target, one.engine) == ("English", "German", "torch")
    assert one.scores[0].signature == "greedy" and one.reverse is None and one.search.beam == 4
    assert server.client.get("/api/v1/models/again").json() == {**one.model_dump(exclude_unset=True), "id": "again"}
    assert server.client.get("/api/v1/models/no").status_code == 404
    assert one.verdict is None


def test_a_model_that_nobody_should_use_says_so(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page shows it above the text; a usable one says nothing."""
    one = models.all[0]
    for verdict, told in (("NOT USABLE: it says nothing", "NOT USABLE: it says nothing"), ("Good: within its kind of text", None)):
        settings = one.translator.settings.changed(trained_on={"verdict": verdict})
        monkeypatch.setattr(one.translator, "settings", settings)
        assert responses.model(one, models)["verdict"] == told


def test_health_says_what_waits_and_is_503_while_the_server_stops(models: Models) -> None:
    with running(models) as server:
        response = server.client.get("/api/v1/health")
        found = responses.HealthAnswer.model_validate(response.json())
        assert response.status_code == 200 and found.status == "ready" and found.version == limelight.__version__
        assert found.models == ["en-de", "again"] and found.queue.requests == 0
        server.service.drain()
        response = server.client.get("/api/v1/health")
        assert response.status_code == 503 and responses.HealthAnswer.model_validate(response.json()).status == "draining"


def test_who_watches_the_process_may_ask_without_wanting_a_body(models: Models) -> None:
    with running(models) as server:
        for path in ("/healthz", "/readyz"):
            response = server.client.head(path)
            assert (response.status_code, response.content) == (200, b"")
        server.service.drain()
        assert server.client.head("/readyz").status_code == 503


def test_the_log_has_counts_and_nothing_of_the_text(server: Running) -> None:
    server.post("translate", {"text": ["one two", "three"]})
    line = server.lines[-1]
    assert (line["route"], line["characters"], line["texts"], line["model"]) == ("/api/v1/translate", 12, 2, "en-de")
    assert isinstance(line["pieces"], int) and line["pieces"] > 3 and "three" not in str(line)
