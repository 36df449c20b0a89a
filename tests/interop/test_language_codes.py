"""Languages of models that others trained, as people write them."""

import pytest

from limelight.errors import ConfigError
from limelight.interop.language_codes import M2M100, NLLB, find, shorten


@pytest.mark.parametrize(
    ("asked", "known", "found"),
    [
        ("de", NLLB, "deu_Latn"),
        ("deu_Latn", NLLB, "deu_Latn"),
        ("zh-Hans", NLLB, "zho_Hans"),
        ("zh_Hant", NLLB, "zho_Hant"),
        ("sr-Cyrl", NLLB, "srp_Cyrl"),
        ("pt-BR", NLLB, "por_Latn"),
        ("pt-BR", M2M100, "pt"),
        ("es-419", M2M100, "es"),
    ],
)
def test_a_language_is_found_as_people_write_it(asked: str, known: tuple[str, ...], found: str) -> None:
    assert find(asked, known) == found


@pytest.mark.parametrize("known", [NLLB, M2M100])
def test_what_a_bundle_calls_a_language_is_found(known: tuple[str, ...]) -> None:
    assert {find(short, known) for short in shorten(known).values()} == set(known)


@pytest.mark.parametrize(
    ("asked", "said"), [("zh", "several forms"), ("tlh", "has no language tlh"), ("sr-Latn", "has no language sr-Latn")]
)
def test_what_a_model_has_not_or_has_twice_is_told(asked: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        find(asked, NLLB)
