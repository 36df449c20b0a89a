"""model.bin holds the tensors of a CTranslate2 model by name; every number in it is checked before it is used.

version, name of the specification, its revision, count, then each variable: name, rank, shape, kind of numbers, bytes, data;
and from version 3 on: count, then each alias: name, name of the variable it stands for
"""

import math
import struct
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from limelight.errors import ModelFileError

# As the engine counts them.
KINDS = (torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16)
BY_SIZE = {4: torch.float32, 2: torch.int16, 1: torch.int8}  # before version 4 only the size of a number was written
VERSIONS = range(2, 7)
MOST_VARIABLES, MOST_BYTES = 100_000, 1 << 36


@dataclass(frozen=True)
class EngineModel:
    version: int
    spec: str
    revision: int
    variables: dict[str, Tensor]


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path, self.data, self.at = path, path.read_bytes(), 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise self.wrong(f"ends at byte {len(self.data):,}, in the middle of something")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, code: str) -> int:
        (value,) = struct.unpack(f"<{code}", self.take(struct.calcsize(code)))
        return int(value)

    def text(self) -> str:
        raw = self.take(self.number("H"))
        try:
            return raw.rstrip(b"\0").decode("ascii")
        except UnicodeDecodeError:
            raise self.wrong(f"has a name at byte {self.at:,} that is no name") from None

    def count(self) -> int:
        value = self.number("I")
        if value > MOST_VARIABLES:
            raise self.wrong(f"claims {value:,} variables")
        return value

    def wrong(self, what: str) -> ModelFileError:
        return ModelFileError(f"{self.path} is no model of CTranslate2, or it is damaged: it {what}; get it again")


def read_model(path: Path) -> EngineModel:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ModelFileError(f"{path} has {path.stat().st_size:,} bytes; models above {MOST_BYTES:,} are not read")
        reader = _Reader(path)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}") from None
    version = reader.number("I")
    if version not in VERSIONS:
        raise reader.wrong(f"has version {version}, and known are {VERSIONS[0]} to {VERSIONS[-1]}")
    spec, revision = reader.text(), reader.number("I")
    variables = dict(_variable(reader, version) for _ in range(reader.count()))
    for _ in range(reader.count() if version >= 3 else 0):
        alias, name = reader.text(), reader.text()
        if name not in variables:
            raise reader.wrong(f"calls {alias[:99]} the same as {name[:99]}, which is not there")
        variables[alias] = variables[name]
    if reader.at != len(reader.data):
        raise reader.wrong(f"goes on after its end, from byte {reader.at:,}")
    return EngineModel(version, spec, revision, variables)


def _variable(reader: _Reader, version: int) -> tuple[str, Tensor]:
    name, rank = reader.text(), reader.number("B")
    shape = [reader.number("I") for _ in range(rank)]
    kind, size = reader.number("B"), reader.number("I")
    if version >= 4 and kind < len(KINDS):
        numbers = KINDS[kind]
    elif version < 4 and kind in BY_SIZE:
        numbers, size = BY_SIZE[kind], size * kind
    else:
        raise reader.wrong(f"has numbers of kind {kind} in {name[:99]}")
    if math.prod(shape) * numbers.itemsize != size:
        raise reader.wrong(f"has {size:,} bytes for {name[:99]} of shape {tuple(shape)}")
    if size == 0:
        # A shape such as (2000000000, 0) costs no byte here, and memory without end where its rows are counted.
        raise reader.wrong(f"has no numbers in {name[:99]} of shape {tuple(shape)}")
    return name, torch.frombuffer(bytearray(reader.take(size)), dtype=numbers).view(shape)
