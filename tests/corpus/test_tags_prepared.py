"""Text of several languages, and with tags, prepared as one corpus: judged by its own languages, held out in all of them at once."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tagged_corpora import held_out_sources, in_language, manifest_of, multi, prepare, write

from limelight.corpus.config import CorpusSettings, HeldOutSettings, PrepareSettings
from limelight.corpus.inputs import Inputs
from limelight.corpus.prepare import addresses
from limelight.corpus.readers import find, read
from limelight.errors import ConfigError, DataError


def wanted(*pairs: str, **rest: object) -> PrepareSettings:
    corpora = [{"name": f"c{n}", "paths": ["x.tsv"], "languages": tuple(pair.split("-"))} for n, pair in enumerate(pairs)]
    return PrepareSettings(languages=tuple(pairs[0].split("-")), corpora=corpora, **rest)


# --- what is asked for


def test_one_direction_has_no_tags():
    assert wanted("en-de").directions == (("en", "de"),)
    assert not wanted("en-de").tag_set.pieces


def test_directions_are_those_of_the_corpora_and_then_turned_ones():
    assert wanted("en-de", "en-fr", "en-de").directions == (("en", "de"), ("en", "fr"))
    both = wanted("en-de", "fr-en", both_directions=True)
    assert both.directions == (("en", "de"), ("fr", "en"), ("de", "en"), ("en", "fr"))
    assert both.tag_set.languages == ("de", "en", "fr")
    assert wanted("en-de", both_directions=True).tag_set.languages == ("de", "en")


def test_with_both_directions_turned_corpora_are_stored_alike():
    assert wanted("en-de", "de-en", both_directions=True).stored == (("en", "de"),) * 2
    assert wanted("en-de", "de-en").stored == (("en", "de"), ("de", "en"))


def test_what_does_not_go_together_is_refused_with_the_fix():
    with pytest.raises(ConfigError, match="no corpus is en to is; name a pair that there is: en to de"):
        PrepareSettings(languages=("en", "is"), corpora=[CorpusSettings(name="a", paths=["x"], languages=("en", "de"))])
    with pytest.raises(ConfigError, match="joint=true"):
        wanted("en-de", both_directions=True, pieces={"joint": False})
    with pytest.raises(ConfigError, match="no name of a tag"):
        CorpusSettings(name="a", paths=["x"], tags=("Formal",))
    with pytest.raises(ConfigError, match=r"held_out\.pairs: no corpus is en to fr"):
        wanted("en-de", held_out={"pairs": [{"split": "valid", "languages": ("en", "fr"), "paths": ["x"]}]})


def test_settings_without_tags_are_written_as_before():
    plain = PrepareSettings(languages=("en", "de"), corpora=[CorpusSettings(name="a", paths=["x"])]).model_dump(mode="json")
    assert plain["corpora"] == [{"name": "a", "paths": ["x"], "weight": 1.0, "columns": None}]
    assert "both_directions" not in plain
    assert "pairs" not in plain["held_out"]
    assert PrepareSettings(**wanted("en-de", "fr-en", both_directions=True).model_dump(mode="json")).pivot == "en"


def test_languages_and_tags_are_part_of_the_address(tmp_path: Path):
    path = write(tmp_path, "a.tsv", ["one\teins"])
    plain = PrepareSettings(languages=("en", "de"), corpora=[{"name": "a", "paths": [path]}])
    seen = set()
    for corpus in ({}, {"languages": ("en", "de")}, {"tags": ("ui",)}, {"partial": True}):
        changed = plain.changed(corpora=[{"name": "a", "paths": [path], **corpus}])
        seen.add(addresses(changed, Inputs.find(changed)))
    assert len({whole for whole, _ in seen}) == 4
    assert len({text for _, text in seen}) == 3  # the text is the same whatever its sources are told


# --- what is read


def test_tags_of_rows_are_read_from_jsonl_and_parquet_in_one_spelling(tmp_path: Path):
    rows = [("a", "b", "ui, formal"), ("c", "d", ["formal", "ui"]), ("e", "f", None), ("g", "h", [])]
    lines = [json.dumps({"source": s, "target": t, "tags": told}) for s, t, told in rows]
    jsonl = write(tmp_path, "a.jsonl", [*lines, json.dumps({"source": "i", "target": "j"})])
    pq.write_table(pa.table({"source": ["a"], "target": ["b"], "tags": [["ui", "formal"]]}), tmp_path / "a.parquet")
    for path, told in ((jsonl, ["formal ui", "formal ui", None, None, None]), (str(tmp_path / "a.parquet"), ["formal ui"])):
        (batch,) = read(find([path], ("en", "de"))[0])
        assert batch.column("tags").to_pylist() == told


def test_a_tsv_whose_first_line_names_its_columns_has_tags(tmp_path: Path):
    path = write(tmp_path, "a.tsv", ["tags\tsource\ttarget", "ui formal\tone\teins", "\ttwo\tzwei", "ui"])
    (batch,) = read(find([path], ("en", "de"))[0])
    assert batch.column("tags").to_pylist() == ["formal ui", None, "ui"]
    assert batch.column("source").to_pylist() == ["one", "two", ""]
    assert batch.column("line").to_pylist() == [2, 3, 4]
    plain = write(tmp_path, "b.tsv", ["source\ttarget", "one\teins"])
    assert [len(batch) for batch in read(find([plain], ("en", "de"))[0])] == [2], "no head without tags, as before"


@pytest.mark.parametrize("told", ['"Formal"', "[1]", "7", '"a b/c"'])
def test_a_field_that_cannot_be_tags_is_refused_with_its_line(tmp_path: Path, told: str):
    path = write(tmp_path, "a.jsonl", ['{"source": "a", "target": "b"}', f'{{"source": "a", "target": "b", "tags": {told}}}'])
    with pytest.raises(DataError, match=r"line 2: its field `tags`.*rename the field"):
        list(read(find([path], ("en", "de"))[0]))


def test_lines_empty_on_one_side_are_no_pairs_of_a_partial_corpus(tmp_path: Path):
    english = in_language("en")
    paths = [write(tmp_path, "a.en", english), write(tmp_path, "a.de", ["", *in_language("de")[1:-1], "  "])]
    prepared = prepare(tmp_path / "prepared", [{"name": "a", "paths": paths, "partial": True}])
    (corpus,) = manifest_of(prepared).corpora
    assert (corpus.read, corpus.dropped) == (118, {})
    assert not any(prepared.split("train").provenance(at).source == english[0] for at in range(prepared.split("train").rows))


@pytest.mark.parametrize("both", [False, True])
def test_a_language_without_a_line_is_refused_for_nobody_could_teach_it(tmp_path: Path, both: bool):
    paths = [write(tmp_path, f"m.{code}", in_language(code)) for code in ("en", "de")] + [write(tmp_path, "m.fr", [""] * 120)]
    corpora = [{"name": f"en-{code}", "paths": [paths[0], path], "languages": ("en", code), "partial": True}
               for code, path in zip(("de", "fr"), paths[1:], strict=True)]  # fmt: skip
    with pytest.raises(DataError, match="no pair is left to train on of en-fr: "):
        prepare(tmp_path / "prepared", corpora, both_directions=both)
    empty = {**corpora[1], "name": "more", "languages": ("en", "de")}
    assert prepare(tmp_path / "other", [corpora[0], empty]).manifest.directions == (("en", "de"),), (
        "an empty corpus of a taught pair is none"
    )


def test_files_of_all_pairs_that_are_not_there_are_named_at_once(tmp_path: Path):
    corpora = [{"name": f"en-{code}", "paths": [f"{tmp_path}/{code}.tsv"], "languages": ("en", code)} for code in ("de", "fr", "cs")]
    with pytest.raises(DataError) as refused:
        prepare(tmp_path / "prepared", corpora)
    assert all(f"{code}.tsv does not exist" in str(refused.value) for code in ("de", "fr", "cs"))


# --- what is made of it


def test_a_sentence_is_held_out_in_all_languages_at_once(tmp_path: Path):
    prepared = multi(tmp_path, "de", "fr", "cs")
    test = held_out_sources(prepared, "test")
    assert {corpus for corpus, _ in test} == {0, 1, 2}
    assert all((other, source) in test for _, source in test for other in range(3))
    assert not {source for _, source in test} & {source for _, source in held_out_sources(prepared, "train")}


def test_targets_that_corpora_share_are_held_out_together_too(tmp_path: Path):
    paths = {code: write(tmp_path, f"a.{code}", in_language(code)) for code in ("en", "de", "fr")}
    corpora = [{"name": code, "paths": [paths[code], paths["en"]], "languages": (code, "en")} for code in ("de", "fr")]
    prepared = prepare(tmp_path / "prepared", corpora, languages=("de", "en"))
    english = {
        split: [prepared.split(split).provenance(at).target for at in range(prepared.split(split).rows)] for split in ("train", "test")
    }
    assert english["test"]
    assert not set(english["test"]) & set(english["train"])


def test_the_same_source_in_two_languages_is_no_conflict(tmp_path: Path):
    english = ["A small dog sees the house today."] * 8
    targets = [f"{word} sieht heute das Haus." for word in ("Hund", "Katze", "Maus", "Pferd", "Kuh", "Huhn", "Ente", "Gans")]
    more = [write(tmp_path, "m.en", in_language("en")), write(tmp_path, "m.de", in_language("de"))]
    corpora = [{"name": "more", "paths": more}]
    for code in ("de", "fr"):
        paths = [write(tmp_path, f"{code}.en", english), write(tmp_path, f"{code}.{code}", targets)]
        corpora.append({"name": code, "paths": paths, "languages": ("en", code)})
    entries = {corpus.name: corpus for corpus in manifest_of(prepare(tmp_path / "prepared", corpora)).corpora}
    assert entries["de"].dropped == entries["fr"].dropped == {"conflict": 4}


def test_each_corpus_is_judged_by_its_own_languages(tmp_path: Path):
    russian = [f"{text} Это дом." for text in ["Красный", "Белый", "Старый"] * 40]
    paths = [write(tmp_path, "a.en", in_language("en")), write(tmp_path, "a.de", in_language("de"))]
    french = in_language("fr", 30)  # so that some text is left where all that is Russian is dropped
    sources = [f"{n} {text}" for n, text in enumerate([*in_language("en"), *in_language("en", 30, seed=3)])]
    others = [write(tmp_path, "b.en", sources), write(tmp_path, "b.ru", [*russian, *french])]
    corpora = [{"name": "a", "paths": paths}, {"name": "b", "paths": others, "languages": ("en", "ru")}]
    filters = {"wrong_script": "drop", "length_ratio": "off", "numbers": "off"}
    entries = manifest_of(prepare(tmp_path / "one", corpora, filters=filters)).corpora
    assert [corpus.dropped.get("wrong_script", 0) for corpus in entries] == [0, 30]
    wrong = [corpora[0], {**corpora[1], "languages": ("en", "fr")}]
    entries = manifest_of(prepare(tmp_path / "two", wrong, filters=filters)).corpora
    assert [corpus.dropped.get("wrong_script", 0) for corpus in entries] == [0, 120]


def test_a_corpus_in_the_other_order_is_read_into_the_first_with_both_directions(tmp_path: Path):
    one = [write(tmp_path, f"a.{code}", in_language(code)) for code in ("en", "de")]
    other = [write(tmp_path, f"b.{code}", in_language(code, seed=2)) for code in ("de", "en")]
    corpora = [{"name": "a", "paths": one}, {"name": "b", "paths": other, "languages": ("de", "en")}]
    prepared = prepare(tmp_path / "prepared", corpora, both_directions=True)
    known = {*in_language("en"), *in_language("en", seed=2)}
    assert {source for _, source in held_out_sources(prepared, "train")} <= known


def test_sets_are_given_for_each_pair(tmp_path: Path):
    dev = {code: write(tmp_path, f"dev.{code}", in_language(code, 30, seed=9)) for code in ("en", "de", "fr")}
    given = {
        "valid": [dev["en"], dev["de"]],
        "pairs": [{"split": "valid", "languages": ("en", "fr"), "paths": [dev["en"], dev["fr"]]}],
        "test_pairs": 5,
    }
    prepared = multi(tmp_path, "de", "fr", held_out=given)
    manifest = manifest_of(prepared)
    assert [corpus.name for corpus in manifest.corpora] == ["en-de", "en-fr", "valid", "valid en-fr"]
    assert manifest.stored == (("en", "de"), ("en", "fr"), ("en", "de"), ("en", "fr"))
    (shard,) = manifest.splits["valid"]
    assert shard.rows_by_corpus == [0, 0, 30, 30]
    assert not HeldOutSettings(**given).is_given("test")


def test_given_pieces_without_the_tags_are_refused(tmp_path: Path):
    pieces = multi(tmp_path / "one", "de").folder / "pieces.model"
    with pytest.raises(DataError, match="have no <2de>, <2fr>"):
        multi(tmp_path / "two", "de", "fr", given_pieces=[str(pieces)])
