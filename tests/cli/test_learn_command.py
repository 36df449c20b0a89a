"""`limelight learn` from the command line: kept only if better, killed in the middle, shown, and taken back."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from limelight.bundle import read, write
from limelight.bundle.layout import SHARED
from limelight.bundle.versions import LEARNT, LearntHistory, find_version, read_history, write_history
from limelight.cli.main import make_app
from limelight.corpus.reading.raw import CorpusPart
from limelight.corpus.reading.records import read_jsonl
from limelight.learning.effect import NEW, OLD
from limelight.store.store import open_store

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "bundles"))
from make_numbers import draw_pairs

from learning_versions import BUNDLE, copy_bundle, learn_by_hand, make_version
from tagged_bundle import write_tagged


def run(*arguments: str) -> Any:
    return CliRunner().invoke(make_app(["learn"]), ["learn", *arguments])


def draw(count: int, seed: int, held_out: bool = False) -> list[tuple[str, str]]:
    drawn = [pair for pair in draw_pairs(5 * count, Random(seed), held_out=held_out) if 2 <= len(pair[0].split()) <= 5]
    return drawn[:count]


def test_history_and_back(tmp_path: Path) -> None:
    folder = copy_bundle(tmp_path / "num")
    assert run(str(folder), "--history").stdout == "nothing was learnt yet\n"
    assert "no version before" in str(run(str(folder), "--back").exception)
    learn_by_hand(folder)
    write_history(folder, LearntHistory(current=1, versions=(make_version(1, effect={NEW: (50.0, 54.0, 0.001)}, refused={"copied": 3}),)))
    shown = run(str(folder), "--history").stdout
    assert "80 corrections, 3 refused" in shown
    assert "corrections 50.0 to 54.0 chrF (p = 0.001)" in shown
    assert "in use" in shown
    assert json.loads(run(str(folder), "--history", "--json").stdout)["current"] == 1
    assert "version 0, as it was trained, is in use again" in run(str(folder), "--back").stdout
    assert read_history(folder).current == 0
    assert (folder / LEARNT / "1" / "run" / "bundle").is_dir()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "one of --store, --corrections, --back and --history"),
        (["--store", "sqlite:///a.db", "--corrections", "b"], "one of --store"),
        (["--back", "--history"], "one of --store"),
        (["--corrections", "b", "--test", "one"], "--test is given twice"),
        (["--corrections", "b", "--export", "c"], "name it with --store"),
        (["--store", "sqlite:///a.db", "--export", "c", "--delete", "1"], "one of them at a time"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: list[str], said: str) -> None:
    assert said in str(run(str(BUNDLE), *arguments).exception)


def test_the_bundle_of_a_run_is_not_the_run(tmp_path: Path) -> None:
    assert "name the run" in str(run(str(tmp_path / "bundle"), "--history").exception)


def test_going_back_needs_no_version_that_can_be_read(tmp_path: Path) -> None:
    folder = copy_bundle(tmp_path / "num")
    learn_by_hand(folder)
    (find_version(folder, 1) / "bundle" / "config.json").write_bytes(b"{")
    assert "is in use again" in run(str(folder), "--back").stdout
    assert read(folder).folder == folder
    assert "is no folder" in str(run(str(tmp_path / "none"), "--history").exception)


def test_without_old_text_nothing_begins(tmp_path: Path) -> None:
    folder = copy_bundle(tmp_path / "num")
    (tmp_path / "c.jsonl").write_text('{"source": "one", "correction": "eins"}\n')
    refused = run(str(folder), "--corrections", str(tmp_path / "c.jsonl"))
    assert "name a test set of old text: --test" in str(refused.exception)
    assert not (folder / LEARNT / "1").exists()


def test_too_few_are_told_before_any_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copy_bundle(tmp_path / "num")
    lines = [json.dumps({"source": source, "correction": target}) for source, target in draw(40, 3)]
    (tmp_path / "c.jsonl").write_text("".join(f"{line}\n" for line in lines))
    for name in ("t.en", "t.de"):
        (tmp_path / name).write_text("one\n" * 30)
    monkeypatch.setattr("limelight.learning.gate.sift", None)
    test = [option for name in ("t.en", "t.de") for option in ("--test", str(tmp_path / name))]
    told = run(str(folder), "--corrections", str(tmp_path / "c.jsonl"), *test)
    assert "there are 40 corrections; it takes 50 beside those held out" in told.stdout


def test_of_several_directions_the_way_out_is_named_and_open(tmp_path: Path) -> None:
    folder, url = write_tagged(tmp_path / "multi"), f"sqlite:///{tmp_path}/store.db"
    refused = str(run(str(folder), "--store", url).exception)
    assert f"limelight learn {folder} --store URL --export corrections" in refused and "--from" in refused
    store = open_store(url)
    for number in range(3):
        store.corrections.add("de", "en", f"Haus {number}", "hose", f"house {number}", "forum")
    store.corrections.add("is", "en", "hús", "hose", "house")
    store.close()
    place = tmp_path / "corrections"
    assert run(str(folder), "--store", url, "--export", str(place)).stdout == f"{place / 'de-en.jsonl'}: 3 corrections\n"
    assert [path.name for path in place.iterdir()] == ["de-en.jsonl"]
    batches = read_jsonl(CorpusPart(0, 0, "jsonl", (str(place / "de-en.jsonl"),), ("de", "en"), None), 10)  # as `train` reads it
    assert [pair for batch in batches for pair in zip(batch["source"].to_pylist(), batch["target"].to_pylist(), strict=True)] == [
        (f"Haus {number}", f"house {number}") for number in range(3)
    ]
    bad = json.loads((place / "de-en.jsonl").read_text().split("\n")[1])
    assert bad["correction"] == "house 1" and bad["key"] == "forum"
    assert run(str(folder), "--store", url, "--delete", str(bad["id"])).stdout == "1 of 1 corrections are deleted\n"
    assert run(str(folder), "--store", url, "--export", str(place)).stdout == f"{place / 'de-en.jsonl'}: 2 corrections\n"
    assert "house 1" not in (place / "de-en.jsonl").read_text()


def _write(place: Path, pairs: list[tuple[str, str]]) -> list[str]:
    for number, language in enumerate(("en", "de")):
        (place.parent / f"{place.name}.{language}").write_text("".join(f"{pair[number]}\n" for pair in pairs), encoding="utf-8")
    return [f"{place}.en", f"{place}.de"]


def _weaken(folder: Path) -> None:
    """A translator that has much to learn: noise on the weights of a good one."""
    good, generator = read(BUNDLE), torch.Generator().manual_seed(1)
    weights = {name: weight + 0.12 * torch.randn(weight.shape, generator=generator) for name, weight in good.weights().items()}
    write(folder, good.settings, weights, (BUNDLE / SHARED).read_bytes())


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(900)
def test_killed_in_the_middle_it_goes_on_and_is_kept_if_better(tmp_path: Path) -> None:
    folder = tmp_path / "num"
    _weaken(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (tmp_path / "c.jsonl").write_text("".join(json.dumps({"source": a, "correction": b}) + "\n" for a, b in draw(220, 5)))
    old, replay = _write(tmp_path / "old", draw(80, 6, held_out=True)), _write(tmp_path / "replay", draw(200, 8))
    both = [each for path in old for each in ("--test", path)] + [each for path in replay for each in ("--replay-data", path)]
    command = [sys.executable, "-m", "limelight", "learn", str(folder), "--corrections", str(tmp_path / "c.jsonl"), *both]
    command += ["schedule.steps=50", "schedule.warmup=5", "optimizer.learning_rate=0.003", "checkpoints.every_seconds=2", "--threads", "1"]
    with subprocess.Popen([*command, "--plain"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as killed:
        assert killed.stderr is not None
        for line in killed.stderr:
            if " step=2" in line or "saved" in line:
                break
        os.kill(killed.pid, signal.SIGKILL)
    assert killed.returncode == -signal.SIGKILL
    assert read_history(folder).current == 0
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert told["number"] == 1
    assert told["kept"], told["why"]
    assert told["effect"][NEW][1] > told["effect"][NEW][0] + 3
    assert told["effect"][OLD][1] > told["effect"][OLD][0] - 0.3
    assert [each.number for each in read_history(folder).versions] == [1]
    assert {name: (folder / name).read_bytes() for name in before} == before
    assert read(folder).folder == find_version(folder, 1) / "bundle"
    assert "nothing is new" in run(*command[4:]).stdout
