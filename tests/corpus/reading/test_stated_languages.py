"""Languages that files say themselves: found where nobody names them, and compared where somebody does."""

import gzip
from pathlib import Path

import pytest

from limelight.cli.settings_arguments import settings_from
from limelight.corpus.reading.finding import find, find_stated_languages
from limelight.corpus.reading.language_tags import state_languages
from limelight.errors import ConfigError, DataError

TMX = (
    '<tmx version="1.4"><header srclang="en"/><body>'
    '<tu><tuv xml:lang="en-GB"><seg>a</seg></tuv><tuv xml:lang="de"><seg>b</seg></tuv></tu></body></tmx>'
)
ONE = '<xliff version="1.2"><file original="x" source-language="en-US" target-language="de_DE"></file></xliff>'
TWO = '<xliff version="2.0" srcLang="en" trgLang="de"></xliff>'


def catalogue(language: str) -> str:
    said = f'"Language: {language}\\n"\n' if language else ""
    return f'# licence\nmsgid ""\nmsgstr ""\n"Project-Id-Version: x\\n"\n{said}\nmsgid ""\n"Language: fr"\nmsgstr ""\n'


@pytest.mark.parametrize(
    ("name", "kind", "content", "expected"),
    [
        ("a.tmx", "tmx", TMX, ("en", "de")),
        ("a.tmx", "tmx", TMX.replace('"en"', '"*all*"'), (None, None)),
        ("a.xlf", "xliff", ONE, ("en-US", "de_DE")),
        ("a.xlf", "xliff", TWO, ("en", "de")),
        ("a.po", "po", catalogue("de"), (None, "de")),
        ("is.po", "po", catalogue("de_AT"), (None, "de_AT")),
        ("menu.is.po", "po", catalogue(""), (None, "is")),
        ("is.po", "po", catalogue(""), (None, "is")),
        ("is/LC_MESSAGES/menu.po", "po", catalogue(""), (None, "is")),
        ("app.po", "po", catalogue(""), (None, None)),
        ("a.en", "lines", "en", (None, None)),
    ],
)
def test_a_file_says_its_languages(name: str, kind: str, content: str, expected: tuple[str | None, str | None], tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, "utf-8")
    assert state_languages(str(path), kind) == expected
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(content.encode()))
    assert state_languages(str(packed), kind) == expected


def folder(tmp_path: Path, *catalogues: str) -> Path:
    (tmp_path / "a.tmx").write_text(TMX)
    (tmp_path / "a.xlf").write_text(ONE)
    for language in catalogues:
        (tmp_path / f"menu.{language}.po").write_text(catalogue(language))
    return tmp_path


def asked(**given: str) -> dict[str, object]:
    options: dict[str, object] = dict.fromkeys(("source", "target", "vocab_size"))
    return options | {"valid": (), "test": (), "keep_dropped": False} | given


def test_the_languages_of_a_folder_are_those_that_most_files_say(tmp_path: Path) -> None:
    place = folder(tmp_path, "de", "is")
    assert find_stated_languages([str(place)]) == ("en", "de")
    assert settings_from([str(place)], asked(), (), None).languages == ("en", "de")
    assert settings_from([str(place)], asked(target="is"), (), None).languages == ("en", "is"), "what is asked for wins"


def test_catalogues_alone_say_their_target(tmp_path: Path) -> None:
    (tmp_path / "menu.po").write_text(catalogue("pt_BR"))
    with pytest.raises(ConfigError, match="--source en --target pt-BR"):
        settings_from([str(tmp_path)], asked(), (), None)


def test_a_catalogue_in_another_language_is_refused_by_name(tmp_path: Path) -> None:
    place = folder(tmp_path, "de", "is", "fr")
    with pytest.raises(DataError) as raised:
        find([str(place)], ("en", "de"))
    said = str(raised.value)
    assert "menu.is.po: is" in said and "menu.fr.po: fr" in said and "menu.de.po" not in said and "Leave them out" in said
    assert len(find([str(place / "*.de.po"), str(place / "a.tmx")], ("en", "de"))) == 2
