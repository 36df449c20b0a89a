"""What a key may spend in a minute and in a month, and that it outlives a restart."""

import asyncio
import functools
import json
import threading
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from limelight.errors import ConfigError
from limelight.files import write_whole
from limelight.serving.access import usage as bookkeeping
from limelight.serving.access.keys import Key
from limelight.serving.access.rate_limits import Caller
from limelight.serving.access.usage import Ledger
from limelight.serving.refusals import QuotaExceeded, TooMany


class Clock:
    """Time as the test wants it."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.date = date(2026, 11, 15)

    def ledger(self, state: Path | None = None) -> Ledger:
        return Ledger(state, now=lambda: self.seconds, day=lambda: self.date)


def key(name: str = "a", **limits: int) -> Key:
    return Key(name=name, sha256="0" * 64, **limits)  # type: ignore[arg-type]


def refused_for(caller: Caller, characters: int = 1, texts: int = 1) -> float:
    with pytest.raises(TooMany) as caught:
        caller.spend(characters, texts)
    assert caught.value.retry_after is not None
    return caught.value.retry_after


def test_a_minutes_worth_goes_at_once_and_then_one_by_one() -> None:
    clock = Clock()
    caller = clock.ledger().caller(key(requests_per_minute=30))
    for _ in range(30):
        caller.spend(5)
    assert refused_for(caller) == pytest.approx(2.0)
    clock.seconds += 1.9
    assert refused_for(caller) == pytest.approx(0.1)
    clock.seconds += 0.1
    caller.spend(5)
    assert refused_for(caller) == pytest.approx(2.0)


def test_waiting_as_long_as_told_is_always_long_enough() -> None:
    clock = Clock()
    caller = clock.ledger().caller(key(requests_per_minute=7, characters_per_minute=1000))
    for cost in (333, 1000, 1, 999, 5000, 17, 250) * 20:
        try:
            caller.spend(cost, cost % 5)
        except TooMany as error:
            assert error.retry_after is not None
            clock.seconds += error.retry_after
            try:
                caller.spend(cost, cost % 5)
            except TooMany as other:  # the other bucket was not looked at before
                assert other.message != error.message and other.retry_after is not None
                clock.seconds += other.retry_after
                caller.spend(cost, cost % 5)


def test_over_an_hour_no_more_is_granted_than_the_rate_and_one_bucket() -> None:
    clock = Clock()
    caller = clock.ledger().caller(key(characters_per_minute=600))
    granted = 0
    for _ in range(3600):
        clock.seconds += 1
        try:
            caller.spend(37)
            granted += 37
        except TooMany:
            pass
    assert 0.99 * 600 * 60 <= granted <= 600 * 61


def test_a_request_larger_than_the_bucket_waits_for_an_empty_one_and_is_paid_for_after() -> None:
    clock = Clock()
    caller = clock.ledger().caller(key(characters_per_minute=100))
    caller.spend(1)
    assert refused_for(caller, 250) == pytest.approx(0.6)
    clock.seconds += 0.6
    caller.spend(250)
    assert refused_for(caller, 1) == pytest.approx(60 * 151 / 100)


def test_texts_count_as_requests() -> None:
    caller = Clock().ledger().caller(key(requests_per_minute=10))
    caller.spend(1, texts=9)
    caller.spend(1, texts=1)
    refused_for(caller)


def test_the_sentence_is_the_one_that_clients_know() -> None:
    caller = Clock().ledger().caller(key(requests_per_minute=20))
    caller.spend(1, 20)
    with pytest.raises(TooMany, match=r"^Slowdown: 20 per 1 minute$"):
        caller.spend(1)


def test_a_refusal_takes_nothing_from_any_purse() -> None:
    clock = Clock()
    ledger = clock.ledger()
    limited = key(requests_per_minute=10, characters_per_minute=100, characters_per_month=1000)
    caller = ledger.caller(limited)
    caller.spend(90, 1)
    for _ in range(50):
        refused_for(caller, 50, 1)
    assert caller.usage() == (90, 1000)
    caller.spend(10, 9)  # had the refused ones cost anything, there would be no room for these


def test_two_requests_of_one_key_share_its_purse_and_two_keys_do_not() -> None:
    ledger = Clock().ledger()
    ledger.caller(key("a", requests_per_minute=1)).spend(7)
    refused_for(ledger.caller(key("a", requests_per_minute=1)))
    ledger.caller(key("b", requests_per_minute=1)).spend(5)
    assert ledger.caller(key("a")).usage().characters == 7


def test_a_quota_is_spent_to_the_last_character_and_begins_anew_with_the_month() -> None:
    clock = Clock()
    caller = clock.ledger().caller(key(characters_per_month=100))
    caller.spend(60)
    with pytest.raises(QuotaExceeded):
        caller.spend(41)
    caller.spend(40)
    assert caller.usage() == (100, 100)
    clock.date = date(2026, 12, 1)
    assert caller.usage() == (0, 100)
    caller.spend(100)


def test_the_same_month_of_another_year_is_another_month() -> None:
    clock = Clock()
    caller = clock.ledger().caller(key(characters_per_month=100))
    caller.spend(100)
    clock.date = date(2027, 11, 15)
    caller.spend(100)


def test_what_brought_no_translation_is_given_back_to_the_quota_but_not_to_the_rate() -> None:
    ledger = Clock().ledger()
    limited = key(characters_per_month=100, characters_per_minute=70)
    ledger.caller(limited).spend(20)
    failed = ledger.caller(limited)
    failed.spend(50)
    failed.give_back()
    failed.give_back()
    assert failed.usage() == (20, 100)
    refused_for(ledger.caller(limited), 1)


def test_nothing_is_given_back_to_another_month() -> None:
    clock = Clock()
    ledger = clock.ledger()
    failed = ledger.caller(key())
    failed.spend(50)
    clock.date = date(2026, 12, 1)
    ledger.caller(key()).spend(60)
    failed.give_back()
    assert ledger.caller(key()).usage().characters == 60


def test_without_a_key_all_is_counted_and_nothing_is_refused() -> None:
    caller = Clock().ledger().caller(None)
    for _ in range(1000):
        caller.spend(10_000, 128)
    assert caller.usage() == (10_000_000, None)
    assert caller.name == ""


def test_what_was_used_outlives_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    state = tmp_path / "new" / "state"
    ledger = clock.ledger(state)
    ledger.caller(key("a")).spend(70)
    ledger.caller(None).spend(5)
    ledger.close()
    again = clock.ledger(state)
    assert again.caller(key("a")).usage().characters == 70
    assert again.caller(None).usage().characters == 5
    with pytest.raises(QuotaExceeded):
        again.caller(key("a", characters_per_month=100)).spend(31)


def test_what_was_used_last_month_is_forgotten(tmp_path: Path) -> None:
    clock = Clock()
    ledger = clock.ledger(tmp_path)
    ledger.caller(key("a")).spend(70)
    ledger.close()
    clock.date = date(2026, 12, 1)
    again = clock.ledger(tmp_path)
    assert again.caller(key("a")).usage().characters == 0
    another = clock.ledger(tmp_path)
    another.caller(key("b")).spend(1)
    another.close()
    assert json.loads((tmp_path / "usage.json").read_bytes()) == {"month": "2026-12", "characters": {"b": 1}}


def test_a_ledger_without_a_folder_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Clock().ledger()
    ledger.caller(key("a")).spend(70)
    ledger.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"[]", b'{"month": "2026-11", "characters": {"a": "x"}}', b"\xff{}"])
def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "usage.json").write_bytes(content)
    with pytest.raises(ConfigError, match=r"usage\.json.*remove it"):
        Clock().ledger(tmp_path)


def test_an_older_state_is_never_written_over_a_newer_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that waits for the disk while the server ends."""
    monkeypatch.setattr(bookkeeping, "WRITTEN_EVERY", 0.01)
    ledger = Clock().ledger(tmp_path)
    held, slow = threading.Event(), threading.Event()

    def on_a_slow_disk(path: Path, content: bytes) -> None:
        if b'"a": 1}' in content:
            held.set()
            slow.wait(10)
        write_whole(path, content)

    monkeypatch.setattr(bookkeeping, "write_whole", on_a_slow_disk)

    async def lives() -> None:
        ledger.caller(key("a")).spend(1)
        keeping = asyncio.ensure_future(ledger.keep())
        assert await asyncio.to_thread(held.wait, 10)
        keeping.cancel()
        ledger.caller(key("a")).spend(2)
        ending = asyncio.ensure_future(asyncio.to_thread(ledger.close))
        await asyncio.sleep(0.1)
        slow.set()
        await ending

    asyncio.run(lives())  # which waits for its threads
    assert json.loads((tmp_path / "usage.json").read_bytes())["characters"] == {"a": 3}


def test_writing_goes_on_whatever_happened_to_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bookkeeping, "WRITTEN_EVERY", 0.01)
    ledger = Clock().ledger(tmp_path)
    written = threading.Event()
    troubles: list[Exception] = [OSError("full"), RuntimeError("new")]

    def at_last(path: Path, content: bytes) -> None:
        if troubles:
            raise troubles.pop()
        write_whole(path, content)
        written.set()

    monkeypatch.setattr(bookkeeping, "write_whole", at_last)

    async def lives() -> None:
        ledger.caller(key("a")).spend(1)
        keeping = asyncio.ensure_future(ledger.keep())
        assert await asyncio.to_thread(written.wait, 5)
        keeping.cancel()

    asyncio.run(lives())
    assert caplog.text.count("could not be written") == 2
    assert json.loads((tmp_path / "usage.json").read_bytes())["characters"] == {"a": 1}


def test_a_folder_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for state in (tmp_path / "file", tmp_path / "file" / "state", Path("/proc/limelight")):
        with pytest.raises(ConfigError, match=r"state=.* cannot be used: .*; "):
            Clock().ledger(state)
    (tmp_path / "usage.json").mkdir()
    with pytest.raises(ConfigError, match=r"state=.* cannot be used: "):
        Clock().ledger(tmp_path)


def test_a_thread_that_comes_to_its_turn_after_the_end_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bookkeeping, "WRITTEN_EVERY", 0.01)
    ledger = Clock().ledger(tmp_path)
    late: list[Callable[[], None]] = []

    async def to_thread(work: Callable[..., None], *given: Any) -> None:
        late.append(functools.partial(work, *given))

    monkeypatch.setattr(bookkeeping.asyncio, "to_thread", to_thread)

    async def lives() -> None:
        ledger.caller(key("a")).spend(1)
        keeping = asyncio.ensure_future(ledger.keep())
        while not late:
            await asyncio.sleep(0.01)
        keeping.cancel()

    asyncio.run(lives())
    ledger.caller(key("a")).spend(2)
    ledger.close()
    late[0]()
    assert json.loads((tmp_path / "usage.json").read_bytes())["characters"] == {"a": 3}
