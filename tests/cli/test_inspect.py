"""`limelight inspect` as a person types it, on the stored translator of English number words to German ones."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner, Result

import warm_process
from limelight.cli.inspect.desk import desk_view
from limelight.cli.inspect.lines import _validation
from limelight.cli.inspect.request import InterventionOptions, cell_of, changes_of, head_name, head_of
from limelight.cli.main import app
from limelight.errors import ConfigError, DataError, LimelightError
from limelight.inspection.drawing.heatmaps import overview
from limelight.inspection.drawing.ribbon import ribbon
from limelight.inspection.drawing.terminal import heat, summary
from limelight.inspection.head_names import Head
from limelight.inspection.interventions import Changes
from limelight.inspection.trace import Trace
from limelight.translator.translate import Translator

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from tagged_corpora import in_language, multi

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"
TEXT = "three seven one"


@pytest.fixture(scope="module")
def translator() -> Iterator[Translator]:
    with Translator.load(BUNDLE, threads=1, engine="torch") as loaded:
        yield loaded


@pytest.fixture(scope="module")
def trace(translator: Translator) -> Trace:
    return translator.trace(TEXT)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["inspect", str(BUNDLE), *map(str, arguments), "--threads", "1"])


def lines(*arguments: object) -> list[str]:
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout.split("\n")[:-1]


def test_a_sentence_is_shown_by_the_head_that_aligns(trace: Trace) -> None:
    assert lines(TEXT) == [*summary(trace), "", *heat(trace, Head.parse(trace.align.head), 80)]


def test_a_head_can_be_named_shortly_or_fully_or_by_its_kind(trace: Trace) -> None:
    wanted = heat(trace, Head("enc", 1, 3), 80)
    assert lines(TEXT, "--head", "e1.3")[-len(wanted) :] == wanted == lines(TEXT, "--head", "enc.1.3")[-len(wanted) :]
    sharpest = min((each for each in trace.heads if each.id.startswith("dec.")), key=lambda each: each.entropy)
    assert head_of(trace, "auto", "dec") == Head.parse(sharpest.id)
    assert head_of(trace, "auto", "cross") == Head.parse(trace.align.head)


def test_what_is_turned_reaches_the_model(translator: Translator) -> None:
    changes = Changes(gates={"cross.1.*": 0, "enc.0.1": 0.4}, mask_source=(1,), positions="zero", attention_temperature=2)
    shown = lines(TEXT, "--mute", "c1.*", "--dim", "e0.1=0.4", "--hide", 1, "--positions", "zero", "--temperature", 2)
    assert shown[:3] == summary(translator.trace(TEXT, changes=changes))


def test_solo_darkens_the_others_of_its_kind(translator: Translator) -> None:
    gates = changes_of(InterventionOptions(mute=["e0.0"], solo=["c1.2", "c0.0"])).gates
    assert list(gates.items()) == [("enc.0.0", 0), ("cross.*.*", 0), ("cross.1.2", 1), ("cross.0.0", 1)]
    stats = {each.id: each.gate for each in translator.trace(TEXT, gates=gates).heads}
    assert {name for name, gate in stats.items() if gate == 1 and name.startswith("cross")} == {
        "cross.1.2",
        "cross.0.0",
    }
    assert stats["enc.0.1"] == 1 and stats["enc.0.0"] == 0


def test_what_is_said_later_counts_later() -> None:
    gates = changes_of(InterventionOptions(mute=["c1.0", "c1.*"], dim=["c1.0=0.4"])).gates
    assert list(gates.items()) == [("cross.1.*", 0), ("cross.1.0", 0.4)]
    gates = changes_of(InterventionOptions(mute=["c*.*"], dim=["c0.1=0.5"], solo=["c1.0"])).gates
    assert list(gates.items()) == [("cross.0.1", 0.5), ("cross.*.*", 0), ("cross.1.0", 1)]


def test_a_given_target_and_a_prefix_are_looked_at(translator: Translator) -> None:
    assert lines(TEXT, "--target", "drei eins")[0] == f"{TEXT}  →  drei eins"
    assert lines(TEXT, "--prefix", "neun")[0].startswith(f"{TEXT}  →  neun")


def test_every_head_has_a_line(trace: Trace) -> None:
    shown = lines(TEXT, "--all")
    assert sum(bool(re.match(r"(enc|dec|cross)\.\d\.\d ", line)) for line in shown) == 24
    assert not any("layer" in line for line in shown), "no map unless a head was asked for"


def test_a_stage_and_a_cell_are_printed(trace: Trace) -> None:
    shown = "\n".join(lines(TEXT, "--tensor", "memory", "--explain", "c1.2:0,1"))
    size = len(trace.source.tokens)
    assert f"memory  [{size}, 32]  float32" in shown
    assert str(trace.explain("cross.1", 2, 0, 1)) in shown


def test_files_are_written_by_their_options(trace: Trace, tmp_path: Path) -> None:
    svg, npz, table = tmp_path / "a.svg", tmp_path / "a.npz", tmp_path / "a.csv"
    shown = lines(TEXT, "--svg", svg, "--npz", npz, "--save", table, "--picture", "ribbon")
    assert shown[-3:] == [f"wrote {path}" for path in (svg, npz, table)]
    assert svg.read_bytes().decode() == ribbon(trace).svg
    with np.load(npz) as found:
        assert np.array_equal(found["cross.1.attn" if "cross.1.attn" in found else "dec.1.cross.attn"], trace["cross.1.attn"])
    lines(TEXT, "--all", "--svg", svg)
    assert svg.read_bytes().decode() == overview(trace).svg


def test_json_is_the_whole_trace_and_nothing_else(trace: Trace, tmp_path: Path) -> None:
    done = run(TEXT, "--json", "--svg", tmp_path / "a.svg")
    value = json.loads(done.stdout)
    assert value["target"]["text"] == trace.target.text and value["attn"]["cross"]["enc"] == "f32"
    assert done.stderr == f"wrote {tmp_path / 'a.svg'}\n"


def test_heads_are_ranked_over_the_sentences_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "some.en"
    path.write_bytes(b"three seven\none\n\nnine two four\n")
    shown = lines("--importance", path)
    assert shown[0] == "heads that matter, muted one by one, over 3 sentences:"
    changes = [float(line.split()[1]) for line in shown[2:-1]]
    assert changes == sorted(changes) and changes[0] < 0 and shown[-1].startswith("and 12 more")


@pytest.mark.slow
def test_with_json_the_ranking_is_in_the_object(tmp_path: Path) -> None:
    path = tmp_path / "some.en"
    path.write_bytes(b"three seven\none\n")
    alone, both = json.loads(run("--importance", path, "--json").stdout), run(TEXT, "--importance", path, "--json")
    assert list(alone) == ["importance"] and len(alone["importance"]) == 24
    assert all(set(head) == {"id", "delta_logp", "per_piece"} for head in alone["importance"])
    assert [head["delta_logp"] for head in alone["importance"]] == sorted(head["delta_logp"] for head in alone["importance"])
    value = json.loads(both.stdout)
    assert value["importance"] == alone["importance"] and value["target"]["text"] == "drei sieben eins"


def test_a_line_of_a_file_that_does_not_fit_is_named(tmp_path: Path) -> None:
    path = tmp_path / "some.en"
    path.write_bytes(b"one\n\n" + b"nine " * 200 + b"\n")
    done = run("--importance", path)
    assert isinstance(done.exception, DataError) and f"{path}, line 3: the source has" in str(done.exception)


def test_sentences_of_a_validation_set_that_do_not_fit_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [(None, "one two"), (None, "nine " * 200), (None, "four")]
    monkeypatch.setattr("limelight.cli.inspect.lines._validation", lambda folder, count, languages: some[:count])
    shown = lines("--importance", 3)
    assert "over 2 sentences" in shown[0] and shown[-1].startswith("1 more sentences of the validation set do not fit")
    done = run("--importance", 3, "--json")
    assert len(json.loads(done.stdout)["importance"]) == 24 and "1 more sentences" in done.stderr


@pytest.mark.slow
def test_sentences_of_a_validation_set_are_of_the_direction_that_is_looked_at(tmp_path: Path) -> None:
    multi(tmp_path, "de", both_directions=True)
    for direction in (("en", "de"), ("de", "en")):
        found = {text for _, text in _validation(tmp_path, 4, direction)}
        assert found and found <= set(in_language(direction[0]))
    with pytest.raises(ConfigError, match="nothing from fr to en"):
        _validation(tmp_path, 4, ("fr", "en"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "nothing to look at"),
        ([TEXT, "--head", "c7.0"], "cross has 2 layers of 4 heads, cross.0.0 to cross.1.3; --all lists them"),
        ([TEXT, "--head", "x1.2"], "names no head; write c5.2"),
        ([TEXT, "--head", "c1.*"], "names many heads"),
        ([TEXT, "--head", "c1.1", "--kind", "enc"], "leave out one of them"),
        ([TEXT, "--mute", "c9.1"], "cross has layers 0 to 1 and heads 0 to 3"),
        ([TEXT, "--dim", "c1.1=2"], "--dim c5.2=0.4"),
        ([TEXT, "--dim", "c1.1"], "--dim c5.2=0.4"),
        ([TEXT, "--tensor", "enc.9.scores"], "enc.0.scores, enc.1.scores"),
        ([TEXT, "--explain", "c1.1:9"], "--explain c2.5:3,4"),
        ([TEXT, "--save", "a.pdf"], "none of .html"),
        ([TEXT, "--json", "--tensor", "memory"], "leave out --json"),
        ([TEXT, "--json", "--explain", "c1.1:0,0"], "leave out --json"),
        (["--importance", "8", "--svg", "never.svg"], "a file cannot be had of no sentence"),
        (["--importance", "8", "--open"], "--open cannot be had of no sentence"),
        (["--importance", "8"], "no run of limelight train"),
        (["--importance", "nowhere.en"], "cannot be read"),
        (["--importance", "0"], "by no sentence"),
    ],
)  # fmt: skip
def test_errors_say_what_to_do(arguments: list[str], words: str) -> None:
    done = run(*arguments)
    assert isinstance(done.exception, LimelightError), done.output
    assert words in str(done.exception)


def test_names_of_heads_and_cells() -> None:
    assert [head_name(each) for each in ("c5.2", "cross.5.2", "e0.*", "d*.*", "*")] == [
        "cross.5.2",
        "cross.5.2",
        "enc.0.*",
        "dec.*.*",
        "*",
    ]
    assert cell_of("e0.3:1,2") == ("enc.0", 3, 1, 2)
    for wrong in ("5.2", "c5", "f1.1", "c5.2.1", ""):
        with pytest.raises(ConfigError):
            head_name(wrong)
    with pytest.raises((ConfigError, DataError)):
        cell_of("c*.1:1,2")


def test_the_address_of_the_desk_says_what_was_chosen() -> None:
    assert desk_view("twenty-one") == "#/x?s=twenty-one"
    asked = desk_view("one", None, "cross.1.2", "ein & zwei", [7, 12], 2)
    assert asked == "#/x?s=one&y=ein%20%26%20zwei&b=2&pre=7,12&l=1&h=2"
    changes = Changes(
        gates={"cross.5.2": 0, "enc.0.*": 0.4},
        mask_source=(1, 3),
        positions="shift:2",
        attention_temperature=0.5,
        gate_mode="mean",
    )
    assert (
        desk_view("a b&c#", changes, "enc.1.3") == "#/x?s=a%20b%26c%23&k=enc&l=1&h=3&off=c5.2,e0.*:0.4&hide=1,3&ex=shift:2&at=0.5&gm=mean"
    )


@pytest.mark.process
def test_the_desk_is_served_until_it_is_stopped() -> None:
    command = [
        sys.executable,
        "-m",
        "limelight",
        "inspect",
        str(BUNDLE),
        TEXT,
        "--open",
        "--port",
        "0",
        "--threads",
        "1",
        "--prefix",
        "drei",
        "--beam",
        "2",
    ]
    process = warm_process.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    try:
        said = process.stderr.readline().decode()
        found = re.search(r"(http://127\.0\.0\.1:\d+)/#/x\?s=three%20seven%20one&b=2&pre=(\d+(?:,\d+)*)&l=\d&h=\d", said)
        assert found, said + process.stderr.read().decode()
        assert httpx.get(f"{found[1]}/readyz").status_code == 200
        asked = {"source": TEXT, "prefix": [int(each) for each in found[2].split(",")], "beam": 2}
        answer = httpx.post(f"{found[1]}/api/v1/trace", json=asked).json()
        assert answer["target"]["text"] == "drei sieben eins"
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
        assert process.returncode == 0 and b"drei sieben eins" in out
    finally:
        process.kill()
        process.communicate()


def test_why_a_word_is_there_is_printed_and_is_in_the_json(trace: Trace, tmp_path: Path) -> None:
    word = trace.target.text.split(" ")[0]
    told = lines(TEXT, "--why", word, "--check")
    assert f"why {word}: followed the source by {100 * trace.why(word).source_share:.0f} %" in told  # type: ignore[attr-defined]
    assert "every word of both sides came from the other" in told
    done = run(TEXT, "--why", 0, "--method", "integrated", "--json", "--check")
    found = json.loads(done.stdout)
    assert found["why"]["method"] == "integrated" and found["why"]["gap"] < 0.02 and found["unmatched"] == []
    place = tmp_path / "map.svg"
    told = lines(TEXT, "--why", word, "--patch-from", "nine seven one", "--svg", place)
    assert "patched from “nine seven one”" in told[-10] and "size of the change" in place.read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--instead-of", "zwei"], "--why"),
        (["--patch-from", "two"], "--why"),
        (["--why", "foo"], "whose pieces are"),
        (["--why", "0", "--method", "magic"], "occlusion, value-zeroing"),
        (["--why", "0", "--patch-from", "nine"], "pieces"),
    ],
)
def test_why_says_what_is_wrong(options: list[str], said: str) -> None:
    with pytest.raises(LimelightError, match=said):
        CliRunner().invoke(app, ["inspect", str(BUNDLE), TEXT, *options, "--threads", "1"], catch_exceptions=False)


def test_why_needs_a_sentence() -> None:
    with pytest.raises(ConfigError, match="--why and --check"):
        CliRunner().invoke(app, ["inspect", str(BUNDLE), "--why", "a", "--check"], catch_exceptions=False)
