"""`spell_tags` writes the tags of each row in one way, whatever a file has in its field `tags`:

"ui, formal"   ["ui", "formal"]   "formal ui"   ->   "formal ui"
null   ""   []                                  ->   null
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from limelight.errors import DataError
from limelight.text.pieces.tags import explain_bad_name

FIELD: Final = "tags"


def spell_tags(values: Sequence[Any], address: str, first_line: int) -> Any:
    """Names in the order of the alphabet with blanks between, as an Arrow column; null where a row has none."""
    spelt: list[str | None] = [None] * len(values)
    for i, value in enumerate(values):
        if value is None:
            continue
        try:
            spelt[i] = _spell(value if isinstance(value, str) else tuple(value))
        except (TypeError, ValueError) as error:
            why = error if isinstance(error, ValueError) else f"{str(value)[:80]!r} is no name and no list of names"
            raise DataError(
                f"{address}, line {first_line + i:,}: its field `{FIELD}` says what a source is told, such as formal: {why}; mend it, or "
                "rename the field if it means something else"
            ) from None
    return pa.array(spelt, pa.string())


@lru_cache(maxsize=10_000)
def _spell(value: str | tuple[Any, ...]) -> str | None:
    names = value.replace(",", " ").split() if isinstance(value, str) else value
    for name in names:
        if not isinstance(name, str):
            raise TypeError
        if why := explain_bad_name(name):
            raise ValueError(why)
    return " ".join(sorted(set(names))) or None
