"""Sharded tensors are stored in a file for each process, which `torch.distributed.checkpoint` can read:

    shard-00001-model-00001-of-00001.safetensors    what rank 0 wrote: name -> its part; the header says where each part begins
    shard-00002-model-00001-of-00001.safetensors    what rank 1 wrote

Plans and reading are torch's own, so that any layout on disk is read into any layout in memory. The files are as its
`HuggingFaceStorageWriter` makes them, but written by `write_tensors`: torch's writer holds a second copy of all bytes in memory, refuses
tensors that share memory, forces a file to disk before its last bytes have left Python's buffer, and does not look at what it wrote.
Who writes what is agreed in JSON. No pickle passes between processes, and none is in a file: of torch.distributed.checkpoint only these
names are used.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError
from torch import Tensor
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, create_default_local_save_plan
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.tensor import DTensor

from limelight.bundle.weights import as_os_error
from limelight.training.checkpoints.folder import TENSORS, shard_name
from limelight.training.processes.world import World

OFFSETS: Final = "DCP_SHARDING_INFO"  # the entry of the header in which torch looks for the places of parts


@dataclass(frozen=True)
class RankShard:
    file: str | None  # None: nothing
    tensors: dict[str, Tensor]
    header: dict[str, str] | None = None

    def copy_to_host(self) -> "RankShard":
        """In host memory of its own: training may go on and change the tensors."""
        copies = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in self.tensors.items()}
        return RankShard(self.file, copies, self.header)


@dataclass(frozen=True)
class TensorPart:
    name: str
    shape: tuple[int, ...]  # of the whole tensor
    dtype: str
    offset: tuple[int, ...]
    sizes: tuple[int, ...]
    split: bool  # a DTensor

    @property
    def count(self) -> int:
        return math.prod(self.sizes)


def share_of(tensors: Mapping[str, Tensor], world: World) -> RankShard:
    """Called by all. Each part is written once, by the one of those who have it that has least to write so far.

    Where no tensor is spread over processes, the main process writes all of them into one file, and those that only others have
    (states of their random numbers: small) are sent to it.
    """
    told = world.gather(world.run_on_all(lambda: _describe_parts(tensors)))
    parts = [
        [TensorPart(n, tuple(shape), dtype, tuple(at), tuple(sizes), split) for n, shape, dtype, at, sizes, split in each] for each in told
    ]
    _check(parts)
    if not any(part.split for told in parts for part in told):
        every = dict(tensors) | _strangers(tensors, parts, world)
        return RankShard(TENSORS, every) if world.main else RankShard(None, {})
    mine = {part.name: part for part in _divide(parts)[world.rank]}
    local = {name: _local(tensors[name]) for name in mine}
    header = {OFFSETS: json.dumps({name: {"saved_offsets": part.offset} for name, part in mine.items()})}
    return RankShard(shard_name(world.rank) if mine else None, local, header)


def read_into(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """In place, each process its own parts. The files were verified, and the tensors are as `misfits` wants them."""
    reader = HuggingFaceStorageReader(str(folder))
    planner = DefaultLoadPlanner()
    try:
        with torch.no_grad():
            metadata = reader.read_metadata()
            planner.set_up_planner(dict(tensors), metadata, is_coordinator=True)
            reader.set_up_storage_reader(metadata, is_coordinator=True)
            reader.read_data(planner.finish_plan(planner.create_local_plan()), planner).wait()
    except SafetensorError as error:
        raise as_os_error(error, folder) from None


def shapes_in(folder: Path) -> dict[str, tuple[torch.Size, torch.dtype]]:
    """Shape and number format of every whole tensor."""
    try:
        found = HuggingFaceStorageReader(str(folder)).read_metadata().state_dict_metadata
    except SafetensorError as error:
        raise as_os_error(error, folder) from None
    return {name: (of.size, of.properties.dtype) for name, of in found.items() if isinstance(of, TensorStorageMetadata)}


def misfits(folder: Path, tensors: Mapping[str, Tensor]) -> list[str]:
    """Why the checkpoint cannot be read into these tensors: every reason. None of them is changed yet."""
    stored, found = shapes_in(folder), []
    for name, tensor in tensors.items():
        if name not in stored:
            found.append(f"{name}: is not in the checkpoint")
        elif stored[name] != (tensor.shape, tensor.dtype):
            shape, dtype = stored[name]
            found.append(f"{name}: is {dtype} {list(shape)} in the checkpoint, but {tensor.dtype} {list(tensor.shape)} here")
    return found


def _describe_parts(tensors: Mapping[str, Tensor]) -> list[list[Any]]:
    told = []
    for item in create_default_local_save_plan(dict(tensors), is_coordinator=True).items:
        data = item.tensor_data
        assert data is not None  # only tensors are given
        if _local(tensors[item.index.fqn]).shape != data.chunk.sizes:
            raise ValueError(f"{item.index.fqn}: this process has {_local(tensors[item.index.fqn]).shape} of it, planned was {data.chunk}")
        place = [list(data.size), str(data.properties.dtype), list(data.chunk.offsets), list(data.chunk.sizes)]
        told.append([item.index.fqn, *place, isinstance(tensors[item.index.fqn], DTensor)])
    return told


def _local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _check(parts: list[list[TensorPart]]) -> None:
    """All processes say the same of a tensor, and its parts make up the whole. The same answer in all of them."""
    wholes: dict[str, TensorPart] = {}
    counts: dict[str, dict[tuple[int, ...], int]] = {}
    for part in (part for told in parts for part in told):
        first = wholes.setdefault(part.name, part)
        if (first.shape, first.dtype) != (part.shape, part.dtype):
            raise ValueError(f"{part.name} is {first.dtype} {first.shape} in one process and {part.dtype} {part.shape} in another")
        if part.count:
            counts.setdefault(part.name, {})[part.offset] = part.count
    for name, whole in wholes.items():
        if sum(counts.get(name, {}).values()) != math.prod(whole.shape):
            raise ValueError(f"{name}: its parts in all processes do not make up the whole {list(whole.shape)}")


def _divide(parts: list[list[TensorPart]]) -> list[list[TensorPart]]:
    """For each process what it writes. The same in all processes. Parts without numbers are left out, unless the tensor has none."""
    holders: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    found: dict[tuple[str, tuple[int, ...]], TensorPart] = {}
    for rank, told in enumerate(parts):
        for part in told:
            if part.count or not math.prod(part.shape):
                key = (part.name, part.offset if part.count else ())
                holders.setdefault(key, []).append(rank)
                found.setdefault(key, part)
    work, load = [[] for _ in parts], [0] * len(parts)  # type: tuple[list[list[TensorPart]], list[int]]
    for key, part in found.items():
        rank = min(holders[key], key=lambda rank: load[rank])
        work[rank].append(part)
        load[rank] += part.count
    return work


def _strangers(tensors: Mapping[str, Tensor], parts: list[list[TensorPart]], world: World) -> dict[str, Tensor]:
    """For the main process: tensors that it does not have itself."""
    known, sent = {part.name for part in parts[0]}, {}
    for rank, told in enumerate(parts):
        for name in sorted({part.name for part in told} - known):
            known.add(name)
            if rank == world.rank:
                plain = tensors[name].detach().cpu().contiguous()
                sent[name] = plain.reshape(-1).view(torch.uint8).numpy().tobytes().hex()
    if len(known) == len(parts[0]):
        return {}
    described = {part.name: part for told in reversed(parts) for part in told}
    found = {name: bytes.fromhex(text) for each in world.gather(sent) for name, text in each.items()}
    return {name: _of_bytes(content, described[name]) for name, content in found.items()}


def _of_bytes(content: bytes, part: TensorPart) -> Tensor:
    dtype: torch.dtype = getattr(torch, part.dtype.removeprefix("torch."))
    if not content:
        return torch.empty(part.shape, dtype=dtype)
    return torch.frombuffer(bytearray(content), dtype=torch.uint8).view(dtype).reshape(part.shape)
