"""Translated files are kept for their owner, once, for a while, and within bounds."""

import re
import time
from urllib.parse import unquote

import pytest

from limelight.serving.compat.uploads import LONGEST_NAME, SAMPLE, SECONDS, Uploads, safe_name, sample_of
from limelight.serving.refusals import Busy


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_file_is_fetched_once_by_its_owner_and_nobody_else() -> None:
    uploads = Uploads()
    key = uploads.keep(b"content", "menu.po", "anna")
    assert uploads.take(key, "berta") is None
    kept = uploads.take(key, "anna")
    assert kept is not None and kept.data == b"content"
    assert uploads.take(key, "anna") is None
    assert uploads.size == 0


def test_names_cannot_be_guessed_and_never_repeat() -> None:
    uploads = Uploads()
    keys = {uploads.keep(b"x", "menu.po", "") for _ in range(50)}
    assert len(keys) == 50
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{32}\.menu\.po", key) for key in keys)


def test_a_file_is_gone_when_its_time_is_over() -> None:
    clock = Clock()
    uploads = Uploads(clock)
    key = uploads.keep(b"x", "a.txt", "")
    clock.now += SECONDS - 1
    assert uploads.find(key, "") is not None
    clock.now += 1
    uploads.forget_old()
    assert uploads.size == 0 and uploads.find(key, "") is None


def test_room_is_made_of_ones_own_oldest_files_and_never_of_those_of_others() -> None:
    clock = Clock()
    uploads = Uploads(clock, largest=10, most=3)
    first = uploads.keep(b"123456", "a.txt", "anna")
    clock.now += 100
    with pytest.raises(Busy) as caught:
        uploads.keep(b"12345", "b.txt", "berta")
    assert caught.value.retry_after == SECONDS - 100 and uploads.find(first, "anna") is not None
    second = uploads.keep(b"12345", "c.txt", "anna")
    assert uploads.find(first, "anna") is None and uploads.find(second, "anna") is not None
    for name in "de":
        uploads.keep(b"1", name, "berta")
    uploads.keep(b"", "f", "anna")
    assert uploads.find(second, "anna") is None
    clock.now += SECONDS
    uploads.keep(b"1234567890", "g.txt", "carla")
    with pytest.raises(Busy):
        uploads.keep(b"12345678901", "h.txt", "carla")


def test_without_keys_nobody_knows_whose_a_file_is_so_none_is_dropped_before_its_time() -> None:
    clock = Clock()
    uploads = Uploads(clock, most=2)
    first, second = (uploads.keep(b"x", name, "") for name in "ab")
    with pytest.raises(Busy):
        uploads.keep(b"x", "c", "")
    assert uploads.find(first, "") is not None and uploads.find(second, "") is not None
    clock.now += SECONDS
    uploads.keep(b"x", "c", "")


def test_asking_whether_there_is_room_drops_nothing() -> None:
    uploads = Uploads(largest=10)
    key = uploads.keep(b"123456", "a.txt", "anna")
    uploads.check_room(5, "anna")
    for size, owner in ((5, "berta"), (11, "anna")):
        with pytest.raises(Busy):
            uploads.check_room(size, owner)
        with pytest.raises(Busy):
            uploads.keep(bytes(size), "b.txt", owner)
    assert uploads.find(key, "anna") is not None


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("menu.po", "menu.po"),
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\menu.po", "menu.po"),
        ("Menü 1.po", "Men_1.po"),
        (".htaccess", "htaccess"),
        ('a"; x="b.txt', "a_x_b.txt"),
        ("a\r\nSet-Cookie: b.txt", "a_Set-Cookie_b.txt"),
        ("名前.txt", "txt"),
        ("...", "file"),
        ("", "file"),
    ],
)
def test_a_name_is_made_safe_for_urls_and_headers(given: str, safe: str) -> None:
    assert safe_name(given) == safe


def test_long_names_are_cut_and_keep_their_ending() -> None:
    assert len(safe_name("x" * 500 + ".txt")) == LONGEST_NAME and safe_name("x" * 500 + ".txt").endswith(".txt")


@pytest.mark.parametrize(
    "name",
    [
        "Menü 1.po",
        "a\r\nb.txt",
        'q".txt',
        "../x/名前.txt",
        "\u202etxt.exe",
        "..\\..\\x.txt",
        "C:\\temp\\x.txt",
        "..",
        "..\\",
        "/",
        ".\r./x.txt",
        "..\x00\\x.txt",
        ".htaccess",
        "a" * 500 + "/../" + "b" * 500,
    ],
)
def test_a_browser_saves_it_under_a_name_that_is_neither_a_path_nor_a_header(name: str) -> None:
    uploads = Uploads()
    kept = uploads.take(uploads.keep(b"x", name, ""), "")
    assert kept is not None
    told = kept.disposition
    assert told.isascii() and told.isprintable()
    assert re.fullmatch(r"attachment; filename=\"[A-Za-z0-9._-]+\"; filename\*=UTF-8''[A-Za-z0-9._~%-]+", told)
    shown = unquote(told.rpartition("''")[2])
    assert not re.search(r"[/\\\x00-\x1f\u202e]", shown) and not shown.startswith(".") and 0 < len(shown) <= LONGEST_NAME


def test_the_sample_for_detection_has_the_words_and_not_the_tags() -> None:
    page = b"<html><body class='the name of the thing'><p>Guten Tag</p></body></html>"
    assert sample_of(page).split() == ["Guten", "Tag"]
    assert sample_of(b"1\n00:00:01,000 --> 00:00:02,000\nGuten Tag\n").split() == ["Guten", "Tag"]
    assert sample_of(b'"Content-Type: text/plain\\n"\nmsgid "Guten Tag"\n').count("msgid") == 0
    assert sample_of(b"\x80abc") == "abc"
    for encoding in ("utf-16", "utf-8-sig"):
        assert sample_of('"a" = "größer";'.encode(encoding)).split() == ['"a"', "=", '"größer";']


@pytest.mark.parametrize("unit", ["a-", "a", "-", "<", "<a", "msg", "1:", "a:"])
def test_a_sample_takes_no_longer_whatever_the_file_repeats(unit: str) -> None:
    data = (unit * SAMPLE).encode()
    begin = time.perf_counter()
    for _ in range(10):
        sample_of(data)
    assert time.perf_counter() - begin < 1.0
