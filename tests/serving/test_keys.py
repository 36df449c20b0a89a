"""Keys are stored as hashes, found in constant time, and end when they should."""

import hmac
import random
import stat
import statistics
import time
from datetime import date
from pathlib import Path

import pytest

from limelight.errors import ConfigError
from limelight.serving.access.keys import Key, Keys, digest_of

KEY = "k" * 32


def keys_of(*keys: Key, day: date = date(2026, 11, 15)) -> Keys:
    return Keys(keys, day=lambda: day)


def test_a_key_that_was_made_is_found_and_only_its_hash_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    made = Keys.add_key(path, "forum", characters_per_month=500)
    found = Keys.load(path).find(made)
    assert found is not None and (found.name, found.characters_per_month) == ("forum", 500)
    assert len(made) >= 32
    assert made.encode() not in path.read_bytes() and digest_of(made).encode() in path.read_bytes()


@pytest.mark.parametrize("wrong", ["", KEY[:-1], KEY + "k", KEY.upper(), "\ud800", "ключ", " " + KEY])
def test_nothing_but_the_whole_key_is_found(wrong: str) -> None:
    keys = keys_of(Key(name="a", sha256=digest_of(KEY)))
    assert keys.find(KEY) is not None
    assert keys.find(wrong) is None


def test_a_key_file_is_for_its_owner_alone_unless_it_was_opened_to_others(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    Keys.add_key(path, "a")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    Keys.add_key(path, "b")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_adding_a_key_keeps_the_others_and_what_people_wrote_beside_them(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_bytes(f'# ours\n[[keys]]\nname = "a"  # the forum\nsha256 = "{digest_of(KEY)}"\nexpires = 2027-01-31\n'.encode())
    made = Keys.add_key(path, "b", requests_per_minute=3, expires=date(2027, 2, 1))
    keys = Keys.load(path)
    old, new = keys.find(KEY), keys.find(made)
    assert old is not None and (old.name, old.expires) == ("a", date(2027, 1, 31))
    assert new is not None and (new.name, new.requests_per_minute, new.expires) == ("b", 3, date(2027, 2, 1))
    assert b"# ours" in path.read_bytes() and b"# the forum" in path.read_bytes()


def test_a_name_is_given_once(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    Keys.add_key(path, "a")
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="another name"):
        Keys.add_key(path, "a")
    assert path.read_bytes() == before


def test_a_bad_file_is_refused_with_all_its_problems(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_bytes(b'[[keys]]\nname = "a b"\nsha256 = "12"\n[[keys]]\nname = "c"\nkey = "secret"\n')
    with pytest.raises(ConfigError) as caught:
        Keys.load(path)
    told = str(caught.value)
    assert all(part in told for part in ("keys.0.name", "keys.0.sha256", "keys.1.sha256", "keys.1.key", str(path)))


def test_a_file_that_is_not_there_or_cannot_be_read_is_not_to_be_left_out(tmp_path: Path) -> None:
    missing = tmp_path / "keys.toml"
    with pytest.raises(ConfigError) as caught:
        Keys.load(missing)
    assert f"limelight serve --make-key NAME --api-key-file {missing}" in str(caught.value)
    assert "leave it out" not in str(caught.value)
    with pytest.raises(ConfigError, match="cannot be read"):
        Keys.load(tmp_path)


@pytest.mark.parametrize("name", ["bad/name", "", "-a", "a b", "x" * 65, "ä", "a\n"])
def test_a_name_that_cannot_be_used_is_told_what_a_name_is(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"letters, digits, \. _ and -, at most 64") as caught:
        Keys.add_key(tmp_path / "keys.toml", name)
    assert "^[" not in str(caught.value)


@pytest.mark.parametrize(
    ("second", "told"),
    [({"name": "a", "sha256": "0" * 64}, "called 'a'"), ({"name": "b", "sha256": digest_of(KEY)}, "same key")],
)
def test_two_entries_cannot_share_a_name_or_a_key(tmp_path: Path, second: dict[str, str], told: str) -> None:
    path = tmp_path / "keys.toml"
    entries = [{"name": "a", "sha256": digest_of(KEY)}, second]
    path.write_bytes("".join(f'[[keys]]\nname = "{e["name"]}"\nsha256 = "{e["sha256"]}"\n' for e in entries).encode())
    with pytest.raises(ConfigError, match=told):
        Keys.load(path)


def test_a_key_is_good_on_its_last_day_and_not_after() -> None:
    key = Key(name="a", sha256=digest_of(KEY), expires=date(2026, 11, 15))
    assert keys_of(key, day=date(2026, 11, 15)).find(KEY) == key
    assert keys_of(key, day=date(2026, 11, 16)).find(KEY) is None


def test_reading_again_takes_what_is_new_and_drops_what_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    first = Keys.add_key(path, "a")
    keys = Keys.load(path)
    path.unlink()
    second = Keys.add_key(path, "b")
    assert keys.find(first) is not None and keys.find(second) is None
    keys.reload()
    assert keys.find(first) is None and keys.find(second) is not None


def test_a_file_that_broke_meanwhile_leaves_the_keys_of_before(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    made = Keys.add_key(path, "a")
    keys = Keys.load(path)
    path.write_bytes(b"[[keys]\n")
    with pytest.raises(ConfigError, match="TOML"):
        keys.reload()
    assert keys.find(made) is not None


def leak(compare: object, key: str, tries: int = 10_000) -> float:
    """Welch's t of the time for a wrong key, with none and with all but one of its leading characters right, in random order.

    The slowest tenth is left out, as by Reparaz, Balasch and Verbauwhede (2017): it measures the machine.
    """
    none, most = "#" * len(key), key[:-1] + "#"
    chance = random.Random(8)
    order = [none, most] * tries
    chance.shuffle(order)
    taken: dict[str, list[int]] = {none: [], most: []}
    for guess in order:
        begin = time.perf_counter_ns()
        compare(guess)  # type: ignore[operator]
        taken[guess].append(time.perf_counter_ns() - begin)
    a, b = (sorted(taken[guess])[: tries * 9 // 10] for guess in (none, most))
    spread = statistics.variance(a) / len(a) + statistics.variance(b) / len(b)
    return abs(statistics.fmean(a) - statistics.fmean(b)) / spread**0.5


def test_the_time_to_refuse_a_key_does_not_tell_how_much_of_it_is_right() -> None:
    keys = keys_of(*(Key(name=f"n{i}", sha256=digest_of(f"{i}{KEY}"[:32])) for i in range(4)))
    # A busy machine may make one comparison look odd; what the key tells it would tell each time.
    assert min(leak(keys.find, f"0{KEY}"[:32]) for _ in range(3)) < 4.5


def test_a_comparison_that_stops_at_the_first_difference_would_be_noticed() -> None:
    def stops_early(guess: str) -> bool:
        return all(a == b for a, b in zip(guess, KEY, strict=True))

    assert leak(stops_early, KEY) > 4.5


def test_every_key_is_compared_to_its_end_wherever_the_right_one_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []
    real = hmac.compare_digest

    def counting(a: bytes, b: bytes) -> bool:
        compared.append(a)
        return real(a, b)

    monkeypatch.setattr("limelight.serving.access.keys.hmac.compare_digest", counting)
    keys = keys_of(*(Key(name=f"n{i}", sha256=digest_of(str(i))) for i in range(5)))
    for guess in ("0", "4", "none"):
        compared.clear()
        keys.find(guess)
        assert len(compared) == 5
