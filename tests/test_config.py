"""Settings: frozen, strict about keys, all problems at once, TOML in and out."""

import fcntl
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from limelight.config import Settings
from limelight.errors import ConfigError
from limelight.files import whole_file
from limelight.model.config import ModelConfig


class Inner(Settings):
    depth: int = 2


class Outer(Settings):
    steps: int
    name: str | None = None
    inner: Inner = Inner()


def test_toml_out_and_in_is_identity() -> None:
    settings = Outer(steps=3, inner=Inner(depth=5))
    assert Outer.from_toml(settings.to_toml()) == settings


def test_toml_is_complete_and_leaves_out_what_is_absent() -> None:
    text = Outer(steps=3).to_toml()
    assert "depth = 2" in text
    assert "name" not in text


def test_every_problem_is_in_one_error() -> None:
    with pytest.raises(ConfigError) as caught:
        ModelConfig(vocab_size=-1, d_modle=512, dropout=2, num_heads="many")
    text = str(caught.value)
    assert len(caught.value.problems) == 4
    assert "d_modle: there is no such key; did you mean `d_model`?" in text
    assert all(word in text for word in ("vocab_size", "dropout", "num_heads"))


def test_problems_between_keys_are_told_beside_misspelt_keys() -> None:
    with pytest.raises(ConfigError) as caught:
        ModelConfig(vocab_size=100, d_model=510, num_heads=8, dropuot=0.1)
    text = str(caught.value)
    assert "did you mean `dropout`?" in text
    assert "try num_heads=2" in text


def test_a_misspelt_nested_key_is_compared_with_its_neighbours() -> None:
    with pytest.raises(ConfigError, match=r"inner\.dpeth: there is no such key; did you mean `depth`\?"):
        Outer.from_toml("steps = 1\n[inner]\ndpeth = 3\n")


def test_two_broken_sections_are_both_told() -> None:
    with pytest.raises(ConfigError) as caught:
        Outer.from_toml('steps = "x"\n[inner]\ndepth = "y"\n')
    assert len(caught.value.problems) == 2


def test_settings_cannot_be_changed_in_place() -> None:
    with pytest.raises(ValidationError):
        Outer(steps=1).steps = 2  # type: ignore[misc]


def test_a_changed_copy_is_checked_again() -> None:
    config = ModelConfig(vocab_size=100)
    assert config.changed(dropout=0.3).dropout == 0.3
    with pytest.raises(ConfigError):
        config.changed(num_heads=7)


def test_saving_leaves_a_whole_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    Outer(steps=1).save(path)
    Outer(steps=2).save(path)
    assert Outer.load(path).steps == 2
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "recipe.toml"
    Outer(steps=1).save(path)
    monkeypatch.setattr(Outer, "to_toml", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Outer(steps=2).save(path)
    assert list(tmp_path.iterdir()) == [path]
    assert Outer.load(path).steps == 1


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"steps = = 1", b"steps = 'x'"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "recipe.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"recipe\.toml"):
        Outer.load(path)


def test_unknown_presets_are_named_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="small"):
        ModelConfig.preset("smal", 100)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"num_kv_heads": 3}, "try num_kv_heads=1"),
        ({"positions": "rotary", "d_model": 24}, "d_head=3 is odd"),
        ({"d_model": 511, "num_heads": 7}, "try d_model=512"),
        ({"source_vocab_size": 50}, "try tie=decoder"),
        ({"end_token": 100}, "end_token=100 is not in a vocabulary of 100"),
        ({"position_layout": "tensor2tensor", "positions": "rotary"}, "try halves"),
    ],
)
def test_model_configs_that_do_not_fit_together_say_the_fix(values: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ModelConfig(vocab_size=100, **values)
    assert said in str(caught.value)


def test_a_file_that_was_made_read_only_is_forced_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opened for writing it would be refused; not to root, hence the look at how it is opened."""
    modes = []
    monkeypatch.setattr(os, "fsync", lambda number: modes.append(fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE))
    with whole_file(tmp_path / "keys.toml") as beside:
        beside.write_bytes(b"x")
        beside.chmod(0o400)
    assert (tmp_path / "keys.toml").read_bytes() == b"x" and modes == [os.O_RDONLY]
