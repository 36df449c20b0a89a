"""The front: what is found under paths, folders and globs, and that a part travels and reads the same each time."""

import dataclasses
import gzip
import json
import pickle
from pathlib import Path

import fsspec
import pytest

from limelight.corpus.readers import RAW, READERS, CorpusPart, find, format_of, guess_languages, read
from limelight.corpus.reading.language_tags import name_without_language
from limelight.errors import DataError

LANGUAGES = ("en", "de")


def made(folder: Path, *names: str) -> str:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(b"") if name.endswith(".gz") else b"")
    return str(folder)


def found(paths: list[str], folder: Path, languages: tuple[str, str] = LANGUAGES) -> list[tuple[str, ...]]:
    parts = find(paths, languages)
    assert [part.file for part in parts] == list(range(len(parts)))
    return [(part.format, *(path.replace(f"{folder}/", "") for path in part.paths)) for part in parts]


def test_formats_are_known_by_their_names() -> None:
    kinds = {
        "tsv": ["a.tsv", "b.TAB"],
        "jsonl": ["c.jsonl.gz", "d.ndjson", "e.json"],
        "parquet": ["f.parquet"],
        "tmx": ["g.tmx.zst"],
        "xliff": ["h.xlf", "i.xliff"],
        "po": ["j.po"],
        "lines": ["k.txt", "l.en", "m"],
    }
    assert {kind: [format_of(name) for name in names] for kind, names in kinds.items()} == {
        kind: [kind] * len(names) for kind, names in kinds.items()
    }
    assert set(kinds) == set(READERS)


def test_a_folder_is_read_to_the_bottom_in_order_and_without_hidden_files(tmp_path: Path) -> None:
    made(tmp_path, "b.tsv", "a.tmx", "deep/er/x.en.gz", "deep/er/x.de.gz", ".hidden.tsv", ".git/a.tsv", "deep/.z.po")
    assert found([str(tmp_path)], tmp_path) == [
        ("lines", "deep/er/x.en.gz", "deep/er/x.de.gz"),
        ("tmx", "a.tmx"),
        ("tsv", "b.tsv"),
    ]


@pytest.mark.parametrize(
    "names",
    [
        ("train.en.gz", "train.de.gz"),
        ("train.en", "train.de.zst"),
        ("en/x.txt", "de/x.txt"),
        ("en/x.en.txt", "de/x.de.txt"),
        ("corpus.en-de.en", "corpus.en-de.de"),
        ("CORPUS.EN-DE.EN", "CORPUS.EN-DE.DE"),
        ("train.en-US", "train.de-AT"),
        ("train_en.txt", "train_de.txt"),
        ("de/train.en", "de/train.de"),
    ],
)
def test_line_files_are_paired_by_their_names(tmp_path: Path, names: tuple[str, str]) -> None:
    made(tmp_path, *(name for name in names if not name.endswith(".zst")))
    for name in names:
        (tmp_path / name).touch()
    assert found([str(tmp_path)], tmp_path) == [("lines", *names)]
    assert found([f"{tmp_path}/**/*"], tmp_path) == [("lines", *names)]


def test_names_lose_their_language_in_each_place_and_in_all() -> None:
    assert name_without_language("a.en-de.en.gz", "en", "de") == ["a.*-de.en", "a.en-de.*", "a.*-de.*"]
    assert name_without_language("spoken.txt", "en", "de") == []
    assert name_without_language("a.en", "en-GB", "de") == ["a.*"]
    assert name_without_language("a.pt", "pt-BR", "pt-PT") == []


def test_two_line_files_given_by_name_are_source_and_target(tmp_path: Path) -> None:
    made(tmp_path, "one", "two.txt", "c.tsv")
    given = [str(tmp_path / name) for name in ("two.txt", "c.tsv", "one")]
    assert found(given, tmp_path) == [("lines", "two.txt", "one"), ("tsv", "c.tsv")]


def test_two_files_in_the_wrong_order_are_noticed(tmp_path: Path) -> None:
    made(tmp_path, "a.en", "a.de")
    with pytest.raises(DataError, match="other order"):
        find([str(tmp_path / "a.de"), str(tmp_path / "a.en")], LANGUAGES)
    assert len(find([str(tmp_path / "a.de"), str(tmp_path / "a.en")], ("de", "en"))) == 1


def test_four_line_files_given_by_name_are_paired_by_name(tmp_path: Path) -> None:
    made(tmp_path, "a.en", "b.en", "b.de", "a.de")
    given = [str(tmp_path / name) for name in ("a.en", "b.en", "b.de", "a.de")]
    assert found(given, tmp_path) == [("lines", "a.en", "a.de"), ("lines", "b.en", "b.de")]


def test_a_file_found_twice_is_read_once(tmp_path: Path) -> None:
    made(tmp_path, "a.tsv", "b.tsv")
    assert len(find([str(tmp_path), f"{tmp_path}/*.tsv", str(tmp_path / "a.tsv")], LANGUAGES)) == 2


def test_all_that_cannot_be_paired_is_in_one_error(tmp_path: Path) -> None:
    made(tmp_path, "README.md", "a.en", "b.de", "c.en", "c.de", "d.fr", "e.en", "e.de", "e.de.gz")
    with pytest.raises(DataError) as caught:
        find([str(tmp_path)], LANGUAGES)
    message = str(caught.value)
    assert all(f"{tmp_path}/{name} has no partner" in message for name in ("README.md", "a.en", "b.de", "d.fr"))
    assert "e.en could be the source of" in message
    assert "c.en" not in message and "train.en and train.de" in message


def test_all_that_is_missing_is_in_one_error_with_near_names(tmp_path: Path) -> None:
    made(tmp_path, "train.en.gz")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError) as caught:
        find([f"{tmp_path}/{name}" for name in ("trian.en.gz", "*.tmx", "empty", "nowhere/x")], LANGUAGES)
    message = str(caught.value)
    assert caught.value.exit_code == 65
    assert f"did you mean {tmp_path}/train.en.gz?" in message
    assert all(said in message for said in ("*.tmx fits no file", "empty is a folder without files", "nowhere/x does not"))


def test_formats_that_are_not_read_say_what_to_do(tmp_path: Path) -> None:
    made(tmp_path, "a.csv", "b.zip", "c.tsv")
    with pytest.raises(DataError, match=r"(?s)a\.csv: convert it.*b\.zip: unpack it"):
        find([str(tmp_path)], LANGUAGES)


def test_addresses_are_expanded_as_paths_are() -> None:
    for name, content in {"x/a.en": b"1\n", "x/a.de": b"eins\n", "x/b.tsv": b"2\tzwei\n", "x/.c.tsv": b""}.items():
        with fsspec.open(f"memory://readers/{name}", "wb") as file:
            file.write(content)
    parts = find(["memory://readers"], LANGUAGES)
    assert [part.format for part in parts] == ["lines", "tsv"]
    pairs = [(row["source"], row["target"]) for part in parts for batch in read(part) for row in batch.to_pylist()]
    assert pairs == [("1", "eins"), ("2", "zwei")]
    assert [part.paths for part in find(["memory://readers/x/a.*"], LANGUAGES)] == [parts[0].paths]
    assert len(find(["memory://readers/x/a.en", "memory://readers/x/a.de"], LANGUAGES)) == 1
    with pytest.raises(DataError, match=r"did you mean memory://.*b\.tsv"):
        find(["memory://readers/x/bb.tsv"], LANGUAGES)


@pytest.mark.parametrize(
    ("source", "target", "guess"),
    [
        ("train.en.gz", "train.de.gz", ("en", "de")),
        ("x/en/a.txt", "x/de/a.txt", ("en", "de")),
        ("a.en-de.en", "a.en-de.de", ("en", "de")),
        ("a_en.txt", "a_de.txt.gz", ("en", "de")),
        ("a.en-US", "a.pt_BR", ("en-US", "pt_BR")),
        ("eng_Latn.dev", "deu_Latn.dev", ("eng_Latn", "deu_Latn")),
        ("a.src", "a.tgt", None),
        ("train.en", "valid.de", None),
        ("a.en", "a.en", None),
        ("one.txt", "two.txt", None),
    ],
)
def test_languages_are_guessed_from_two_names(source: str, target: str, guess: tuple[str, str] | None) -> None:
    assert guess_languages(source, target) == guess


def test_a_part_survives_json_and_pickle() -> None:
    part = CorpusPart(1, 2, "tsv", ("a.tsv",), LANGUAGES, ("2", "4"))
    assert CorpusPart(**json.loads(json.dumps(dataclasses.asdict(part)))) == part
    assert pickle.loads(pickle.dumps(part)) == part
    assert hash(part)


def test_the_same_part_gives_the_same_batches(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"".join(b"%d\t%d\n" % (i, i) for i in range(1000)))
    (part,) = find([str(tmp_path)], LANGUAGES, corpus=5, first_file=9)
    first, second = list(read(part, 300)), list(read(part, 300))
    assert [len(batch) for batch in first] == [300, 300, 300, 100]
    assert all(one.equals(two) for one, two in zip(first, second, strict=True))
    assert (first[0].schema, part.corpus, part.file) == (RAW, 5, 9)


@pytest.mark.parametrize("kind", [kind for kind in READERS if kind != "parquet"])
def test_an_empty_file_has_no_rows(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a").touch()
    assert list(read(CorpusPart(0, 0, kind, (str(tmp_path / "a"),) * (2 if kind == "lines" else 1), LANGUAGES))) == []


def test_a_part_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(DataError, match="no format"):
        read(CorpusPart(0, 0, "docx", ("a",), LANGUAGES))
    with pytest.raises(DataError, match=r"2 file\(s\)"):
        read(CorpusPart(0, 0, "lines", ("a",), LANGUAGES))


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("github://corpus.tsv", marks=pytest.mark.process),
        "github://a:b@/x.tsv",
        "nowhere://a.tsv",
        "hdfs://x/a.tsv",
        "reference://a.tsv",
    ],
)
def test_an_address_that_cannot_be_read_is_an_error_for_people(address: str) -> None:
    with pytest.raises(DataError, match="cannot be read") as refused:
        find([address], LANGUAGES)
    assert address in str(refused.value)
