"""Arrays travel in JSON as bytes of a chosen width, in base64, row by row.

    pack(weights, "u8")  ->  {"shape": [6, 8, 15, 13], "enc": "u8", "scale": 1/255, "data": "AAEC..."}

    u8     a byte for each weight: value = byte * scale. For what lies between 0 and 1; off by at most scale / 2, that is 0.002
    f16    two bytes, little end first: three digits, and -inf where a score is masked
    f32    four bytes: all there is
    json   a list of numbers with six digits, for those who have nothing to decode with; null is -inf

A masked cell is no number: which cells are masked follows from a rule that goes with the array, never from its zeros.
"""

import base64
import binascii
import math
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from limelight.errors import DataError

Encoding = Literal["u8", "f16", "f32", "json"]
Floats = npt.NDArray[np.float32]
SCALE: Final = 1 / 255
DIGITS: Final = 6  # of a number in a list
# Of a number; in a list about this number of characters.
BYTES: Final[dict[Encoding, int]] = {"u8": 1, "f16": 2, "f32": 4, "json": 9}
_TYPES: Final = {"f16": "<f2", "f32": "<f4"}
_LARGEST: Final = float(np.finfo(np.float16).max)


def pack(array: npt.NDArray[Any], encoding: Encoding) -> dict[str, Any]:
    """Whole numbers, such as ids, are a list whatever is asked for: none of them may be off."""
    shape = list(array.shape)
    if np.issubdtype(array.dtype, np.integer):
        return {"shape": shape, "enc": "json", "data": array.reshape(-1).tolist()}
    if encoding == "json":
        return {"shape": shape, "enc": "json", "data": [round(x, DIGITS) if math.isfinite(x) else None for x in array.reshape(-1).tolist()]}
    if encoding == "u8":
        raw = np.rint(array * 255).astype(np.uint8)
        return {"shape": shape, "enc": "u8", "scale": SCALE, "data": _base64(raw)}
    if encoding == "f16":  # what is finite stays finite: infinity means masked
        array = np.where(np.isfinite(array), np.clip(array, -_LARGEST, _LARGEST), array)
    return {"shape": shape, "enc": encoding, "data": _base64(array.astype(_TYPES[encoding]))}


def unpack(value: dict[str, Any]) -> npt.NDArray[Any]:
    """Back again: float32, or int64 for whole numbers. Refuses what is not as long as its shape says."""
    try:
        shape, encoding = tuple(map(int, value["shape"])), value["enc"]
        if encoding == "json":
            found = _read(value["data"])
        elif encoding == "u8":
            found = _bytes(value, np.dtype(np.uint8)).astype(np.float32) * np.float32(value["scale"])
        else:
            found = _bytes(value, np.dtype(_TYPES[encoding])).astype(np.float32)
        if min(shape, default=0) < 0 or math.prod(shape) != found.size:
            raise DataError(f"an array of shape {list(shape)} has {found.size} numbers; it was cut, or is none of ours")
        return found.reshape(shape)
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise DataError(f"an array cannot be read: {type(error).__name__}; it was changed, or is none of ours") from None


def _read(data: list[float | None]) -> npt.NDArray[Any]:
    if all(type(value) is int for value in data) and data:
        return np.array(data, dtype=np.int64)
    return np.array([-math.inf if value is None else value for value in data], dtype=np.float32)


def _base64(array: npt.NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def _bytes(value: dict[str, Any], kind: np.dtype[Any]) -> npt.NDArray[Any]:
    return np.frombuffer(base64.b64decode(value["data"], validate=True), dtype=kind)
