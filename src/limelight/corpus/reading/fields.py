"""These functions find which two fields of a record are the pair, as given or by their usual names.

fields_of({"id", "translation"}, {"translation": {"en", "de"}}, ("en", "de"))  ->  ("translation", "en"), ("translation", "de")
"""

from collections.abc import Collection, Mapping

Path = tuple[str, ...]
NESTED = "translation"  # where Hugging Face's translation corpora keep an object with a text for each language


def fields_of(
    names: Collection[str], nested: Mapping[str, Collection[str]], languages: tuple[str, str]
) -> tuple[Path, Path] | None:
    """The first that is there of source/target, src/tgt, the two languages, and the two languages in `translation`."""
    for source, target in (("source", "target"), ("src", "tgt"), languages):
        if source in names and target in names:
            return (source,), (target,)
    inner = nested.get(NESTED, ())
    if languages[0] in inner and languages[1] in inner:
        return (NESTED, languages[0]), (NESTED, languages[1])
    return None


def parse_columns(columns: tuple[str, str]) -> tuple[Path, Path]:
    """translation.en -> ("translation", "en"): a dot leads into an object."""
    return tuple(columns[0].split(".")), tuple(columns[1].split("."))


def not_found(address: str, names: Collection[str], languages: tuple[str, str]) -> str:
    """The words of the error."""
    shown = ", ".join(sorted(names)[:20]) or "none"
    return (
        f"{address} has no fields named source and target, src and tgt, {languages[0]} and {languages[1]}, or a "
        f"translation with both languages; it has: {shown}; name the two columns that hold the pair"
    )
