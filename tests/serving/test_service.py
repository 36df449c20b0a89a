"""The service with a real translator, in a real event loop, without HTTP."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from limelight.decoding.config import SearchSettings
from limelight.errors import ConfigError
from limelight.serving.queue.in_flight import GRACE
from limelight.serving.queue.models import Models, load
from limelight.serving.queue.observer import NullObserver
from limelight.serving.queue.service import Service, StreamedSentence, StreamedText, TranslateOptions
from limelight.serving.queue.work import Deadline
from limelight.serving.refusals import BadRequest, Late, NotFound
from limelight.serving.settings import ServeSettings
from limelight.text.careful.glossary import Glossary

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"
TEXT = "one two. three four.\n\nfive six."


@pytest.fixture(scope="module")
def models() -> Iterator[Models]:
    models = load([str(BUNDLE), f"again={BUNDLE}"], threads=1)
    yield models
    models.close()


def run(models: Models, work: Callable[[Service, TranslateOptions], Awaitable[Any]], **settings: Any) -> Any:
    async def whole() -> Any:
        service = Service(models, ServeSettings(**settings), NullObserver())
        try:
            return await work(service, TranslateOptions(models.all[0]))
        finally:
            service.batcher.close()

    return asyncio.run(whole())


@pytest.mark.slow
def test_a_service_translates_as_the_translator_does(models: Models) -> None:
    texts = ["one two three", TEXT, "", "  seven "]

    async def work(service: Service, options: TranslateOptions) -> list[str]:
        return [each.text for each in await service.translate(texts, options)]

    alone = models.all[0].translator.translate(texts, segment=True)
    assert run(models, work) == [each.text for each in alone]


@pytest.mark.slow  # it loads torch
def test_checks_neither_count_in_what_others_wait_for_nor_slow_them(models: Models) -> None:
    async def work(service: Service, options: TranslateOptions) -> None:
        speeds = service.batcher.speed, service.batcher.slower.speed  # type: ignore[union-attr]
        checked = asyncio.ensure_future(service.translate(["one two three"] * 2, replace(options, check=True), document=object()))
        while not service.checks.jobs:
            await asyncio.sleep(0.001)
        assert service.batcher.wait_for(0, None) == service.batcher.backlog == 0
        assert service.pressure().requests == 1  # whoever looks at the server sees them all the same
        assert {each.text for each in await checked} == {"eins zwei drei"}
        assert speeds == (service.batcher.speed, service.batcher.slower.speed)  # type: ignore[union-attr]
        assert not service.checks.jobs

    run(models, work)


def test_requests_with_different_wishes_run_side_by_side(models: Models) -> None:
    async def work(service: Service, options: TranslateOptions) -> list[list[Any]]:
        greedy = TranslateOptions(options.served, SearchSettings(beam=1))
        other = TranslateOptions(service.models.by_id("again"), align=True)
        kinds = [options, greedy, other] * 4
        return await asyncio.gather(*[service.translate(["one two"], each) for each in kinds])

    found = run(models, work)
    assert {answer[0].text for answer in found} == {"eins zwei"}
    assert [answer[0].alignment is not None for answer in found] == [False, False, True] * 4


def test_sentences_are_told_as_they_are_done_and_the_whole_at_the_end(models: Models) -> None:
    async def work(service: Service, options: TranslateOptions) -> list[StreamedSentence | StreamedText]:
        return [each async for each in service.stream([TEXT, "seven"], options)]

    told = run(models, work)
    wholes = {each.text: each.translation.text for each in told if isinstance(each, StreamedText)}
    sentences = sorted(each[:3] for each in told if isinstance(each, StreamedSentence))
    alone = models.all[0].translator.translate([TEXT, "seven"], segment=True)
    assert sentences == [(0, 0, 3), (0, 1, 3), (0, 2, 3), (1, 0, 1)]
    assert wholes == {number: each.text for number, each in enumerate(alone)}
    last = max(at for at, each in enumerate(told) if isinstance(each, StreamedSentence) and each.text == 0)
    assert next(at for at, each in enumerate(told) if isinstance(each, StreamedText) and each.text == 0) > last


def test_a_document_goes_through_the_same_queue(models: Models) -> None:
    async def work(service: Service, options: TranslateOptions) -> Any:
        return await service.document(b"<p>one <b>two</b></p><pre>x</pre>", "html", options)

    done = run(models, work)
    assert done.counts.translated >= 1
    assert b"<b>" in done.data and b"eins" in done.data


def test_a_document_that_cannot_be_read_is_the_clients_fault(models: Models) -> None:
    async def work(service: Service, options: TranslateOptions) -> None:
        with pytest.raises(BadRequest, match="cannot be translated"):
            await service.document(b"<tmx", "tmx", options)
        assert service.documents.open == 0

    run(models, work)


def test_a_text_that_is_cancelled_leaves_nothing_behind(models: Models) -> None:
    async def work(service: Service, options: TranslateOptions) -> None:
        task = asyncio.ensure_future(service.translate(["one two. " * 200], options))
        await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.wait({task})
        assert (len(service.batcher.jobs), service.batcher.queue.pieces) == (0, 0)

    run(models, work)


def test_a_text_has_the_time_it_asked_for_and_no_more(models: Models) -> None:
    async def work(service: Service, options: TranslateOptions) -> None:
        with pytest.raises(Late):
            await service.translate(["one two"], TranslateOptions(options.served, deadline=Deadline(1e-6)))
        assert not service.batcher.jobs

    run(models, work)


def test_a_request_may_bring_its_own_terms(models: Models) -> None:
    async def work(service: Service, options: TranslateOptions) -> str:
        terms = Glossary.of({"two": "drei"})
        return (await service.translate(["one two"], TranslateOptions(options.served, glossary=terms)))[0].text

    assert "drei" in run(models, work)


def test_a_service_that_stops_is_not_ready_and_waits_for_what_is_under_way(models: Models) -> None:
    async def work(service: Service, options: TranslateOptions) -> None:
        assert service.state == "ready"
        service.under_way.add(1)
        service.drain()
        assert service.state == "draining" and not service.under_way.refuses
        assert (await service.translate(["one"], options))[0].text == "eins"
        drained = asyncio.ensure_future(service.wait_drained())
        await asyncio.sleep(GRACE + 0.1)
        assert service.under_way.refuses and not drained.done()
        assert (await service.translate(["two"], options))[0].text == "zwei"  # of a request that was let in before
        service.under_way.add(-1)
        await asyncio.wait_for(drained, 1)

    run(models, work)
    assert GRACE <= 2


def test_a_document_under_way_is_finished_though_the_service_stops(models: Models) -> None:
    async def work(service: Service, options: TranslateOptions) -> Any:
        lines = b"one two three\n" * 700
        task = asyncio.ensure_future(service.document(lines, "txt", options))
        await asyncio.sleep(0.05)
        service.drain()
        await asyncio.sleep(GRACE)
        return await task

    assert run(models, work).data.count(b"eins zwei drei") == 700


@pytest.mark.slow
def test_a_document_does_not_keep_its_callers_other_texts_waiting(models: Models) -> None:
    async def work(service: Service, options: TranslateOptions) -> None:
        mine = TranslateOptions(options.served, caller="me")
        words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
        lines = "".join(f"{a} {b} {c} {d}\n" for a in words for b in words for c in words for d in words[:3]).encode()
        document = asyncio.ensure_future(service.document(lines, "txt", mine))
        while not service.batcher.queue.pieces:
            await asyncio.sleep(0.01)
        await asyncio.wait_for(service.translate(["one"], mine), 3)
        assert not document.done()
        document.cancel()
        await asyncio.wait({document})
        await asyncio.sleep(0.2)
        assert not service.batcher.jobs

    run(models, work)


def test_scores_are_those_of_the_translator(models: Models) -> None:
    async def work(service: Service, options: TranslateOptions) -> list[float]:
        return [each.log_prob for each in await service.score(["one", "two"], ["eins", "zwei"], options)]

    alone = models.all[0].translator.score(["one", "two"], ["eins", "zwei"])
    assert run(models, work) == pytest.approx([each.log_prob for each in alone], abs=1e-4)


def test_the_model_is_picked_by_languages_and_by_name(models: Models) -> None:
    first, again = models.all
    assert models.pick(None, None) is first
    assert models.pick("EN-gb", "de-AT") is first
    assert models.pick("en", "de", "again") is again
    assert models.reverse(first) is None
    with pytest.raises(BadRequest, match="no model for these languages"):
        models.pick("fr", "de")
    with pytest.raises(BadRequest, match="translates from en to de"):
        models.pick("de", "en", "again")
    with pytest.raises(NotFound):
        models.pick(None, None, "nobody")


def test_all_problems_with_names_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        load(["a=x", "a=y", "b c=z"], threads=1)
    assert len(error.value.problems) == 2
    with pytest.raises(ConfigError, match="nothing to serve"):
        load([], threads=1)
