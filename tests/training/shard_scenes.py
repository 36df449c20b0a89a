"""What processes do in the tests of checkpoints that are spread over them. The numbers of a tensor depend on its name alone."""

import hashlib
import json
import os
import resource
import time
import zlib
from pathlib import Path
from typing import Any

import inject_fault
import torch
import torch.distributed.checkpoint as dcp
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from limelight.errors import ModelFileError
from limelight.training.checkpoints import checkpoint
from limelight.training.checkpoints.folder import STATE, candidates
from limelight.training.checkpoints.shards import misfits, read_into
from limelight.training.checkpoints.tensors import same_bits
from limelight.training.checkpoints.writer import CheckpointWriter
from limelight.training.processes.world import World

SHAPES = {
    "weights/up": (10, 6),
    "weights/down": (6, 10),
    "weights/norm": (6,),
    "weights/one": (1, 3),
    "weights/odd": (7, 5),
}


def numbers(name: str, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
    """With a NaN, a -0 and an infinity among them."""
    made = torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))
    made.view(-1)[:3] = torch.tensor([-0.0, float("nan"), float("inf")])
    return made.to(dtype)


def spread(world: World, kind: str, filled: bool) -> dict[str, Tensor]:
    """The same tensors in the layout of a kind; without numbers where `filled` is False."""
    whole = {name: numbers(name, shape) for name, shape in SHAPES.items()}
    whole |= {f"optimizer/{name}": numbers(f"optimizer/{name}", shape).bfloat16() for name, shape in SHAPES.items()}
    whole["optimizer/step"] = torch.tensor(17.0)
    whole["average/nothing"] = torch.zeros(0, 4)
    if not filled:
        whole = {name: torch.full_like(tensor, 3) for name, tensor in whole.items()}
    tensors: dict[str, Tensor] = dict(whole)
    if kind == "fsdp":
        mesh = init_device_mesh("cpu", (world.size,))
        tensors |= {n: distribute_tensor(t, mesh, [Shard(0)]) for n, t in whole.items() if t.dim()}
    elif kind == "hybrid":
        mesh = init_device_mesh("cpu", (2, world.size // 2))
        tensors |= {n: distribute_tensor(t, mesh, [Replicate(), Shard(0)]) for n, t in whole.items() if t.dim()}
    tensors[f"chance/cpu/{world.rank}"] = chance(world.rank) if filled else torch.zeros(9, dtype=torch.uint8)
    return tensors


def chance(rank: int) -> Tensor:
    return torch.arange(9, dtype=torch.uint8) + rank


class Network(torch.nn.Module):
    def __init__(self, filled: bool) -> None:
        super().__init__()
        self.up, self.down, self.norm = torch.nn.Linear(6, 16), torch.nn.Linear(16, 6), torch.nn.LayerNorm(6)
        for name, weight in self.named_parameters():
            weight.data = numbers(name, tuple(weight.shape)) if filled else torch.full_like(weight, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.down(torch.relu(self.up(x))))


def network(world: World, kind: str, filled: bool) -> dict[str, Tensor]:
    """Weights as FSDP2 and tensor parallelism really have them: "one", "fsdp", "tensor", "both"."""
    model = Network(filled)
    across = {"tensor": world.size, "both": 2}.get(kind, 1)
    mesh = init_device_mesh("cpu", (world.size // across, across), mesh_dim_names=("data", "tensor"))
    if across > 1:
        parallelize_module(model, mesh["tensor"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    if kind in ("fsdp", "both"):
        fully_shard(model, mesh=mesh["data"])
    return {f"weights/{name}": weight for name, weight in model.named_parameters()}


def tensors_of(world: World, kind: str, filled: bool) -> dict[str, Tensor]:
    if kind.startswith("network "):
        return network(world, kind.removeprefix("network "), filled)
    return spread(world, kind, filled)


# ---- scenes


def save(world: World, root: str, kind: str, step: int, keep: int = 2) -> Any:
    state = {"step": step, "by": "main"} if world.main else {"not": "asked"}
    folder = checkpoint.save(Path(root), step, tensors_of(world, kind, True), state, keep, world)
    return sorted(path.name for path in folder.iterdir())


def load(world: World, root: str, kind: str) -> Any:
    """Every tensor as it should be, to the bit? And the step, the state, what was refused."""
    found = checkpoint.latest(Path(root), world)
    if found.checkpoint is None:
        return {"step": None, "refused": found.refused}
    stored = found.checkpoint.names()
    into = {name: tensor for name, tensor in tensors_of(world, kind, False).items() if name in stored}
    found.checkpoint.load_into(into)
    wanted = tensors_of(world, kind, True)
    differ = [name for name in into if not same_bits(_local(into[name]), _local(wanted[name]))]
    return {
        "step": found.checkpoint.step,
        "state": found.checkpoint.state,
        "refused": found.refused,
        "differ": differ,
        "loaded": sorted(into),
        "bits": digest(into),
    }


def digest(tensors: dict[str, Tensor]) -> str:
    """Of the whole tensors, the same for every layout."""
    said = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        if not name.startswith("chance/"):
            whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
            said.update(name.encode() + whole.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return said.hexdigest()


def _local(tensor: Tensor) -> Tensor:
    return (tensor.to_local() if isinstance(tensor, DTensor) else tensor).detach()


def save_behind(world: World, root: str, kind: str, steps: list[int]) -> Any:
    """In the background, while the tensors are changed."""
    background = CheckpointWriter(Path(root), 2, world)
    said = []
    for step in steps:
        tensors = tensors_of(world, kind, True)
        background.begin(step, tensors, {"step": step, "by": "main"})
        for tensor in tensors.values():
            _local(tensor).zero_()
        folder = background.finish()
        said.append(None if folder is None else folder.name)
    return [*said, background.finish(), background.ready]


def reshard(world: World, root: str, kind: str, step: int) -> Any:
    """Takes what is there into this layout, and saves it from here as a later step."""
    found = checkpoint.latest(Path(root), world).checkpoint
    assert found is not None
    stored = found.names()
    tensors = {name: tensor for name, tensor in tensors_of(world, kind, False).items() if name in stored}
    found.load_into(tensors)
    checkpoint.save(Path(root), step, tensors, found.state, 2, world)
    return digest(tensors)


def save_with_a_limit(world: World, root: str, kind: str, step: int, rank: int, most: int, behind: bool) -> Any:
    """The kernel cuts what one rank writes after some bytes. How long all of them took to hear of it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    began = time.monotonic()
    tensors = tensors_of(world, kind, True)
    background = CheckpointWriter(Path(root), 2, world) if behind else None  # its group is made before the limit
    if world.rank == rank:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        if background is not None:
            background.begin(step, tensors, {"step": step})
            background.finish()
        else:
            checkpoint.save(Path(root), step, tensors, {"step": step}, 2, world)
    except OSError as error:
        return {"errno": error.errno, "text": str(error), "seconds": time.monotonic() - began}
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    return {"errno": None}


def save_with_a_fault(world: World, root: str, kind: str, step: int, fault: str) -> Any:
    inject_fault.install()
    os.environ["LIMELIGHT_FAULT"] = fault
    try:
        return save(world, root, kind, step)
    finally:
        del os.environ["LIMELIGHT_FAULT"]


def load_what_does_not_fit(world: World, root: str) -> Any:
    """One rank asks for a tensor that is not there, the other for another shape and another format. What is said, and what was changed."""
    found = checkpoint.latest(Path(root), world).checkpoint
    assert found is not None
    tensors = spread(world, "fsdp", False)
    before = digest(tensors)
    wrong = {"absent": torch.zeros(2)} if world.main else {"weights/up": torch.zeros(3), "optimizer/step": torch.tensor(1)}
    try:
        found.load_into(tensors | wrong)
    except ModelFileError as error:
        return {"text": str(error), "unchanged": digest(tensors) == before}
    return None


def save_contradictions(world: World, root: str) -> Any:
    """The ranks do not agree on the shape of a tensor."""
    checkpoint.save(Path(root), 1, {"weight": torch.zeros(2 + world.rank)}, {}, 2, world)


def read_by_torch(world: World, root: str, kind: str) -> Any:
    """By the collective loader of torch, which knows nothing of us."""
    found = checkpoint.latest(Path(root), world).checkpoint
    assert found is not None
    into = {n: t for n, t in tensors_of(world, kind, False).items() if not n.startswith("chance/")}
    dcp.load(into, storage_reader=dcp.HuggingFaceStorageReader(str(found.folder)))
    return digest(into)


def written_by_torch(world: World, folder: str, kind: str) -> Any:
    """The other way round: its writer, our reader."""
    tensors = {n: t for n, t in tensors_of(world, kind, True).items() if not n.startswith("chance/")}
    dcp.save(tensors, storage_writer=dcp.HuggingFaceStorageWriter(folder, save_distributed=True))
    into = {n: t for n, t in tensors_of(world, kind, False).items() if not n.startswith("chance/")}
    assert not misfits(Path(folder), into)
    read_into(Path(folder), into)
    return digest(into)


def wanted_digest(world: World, kind: str) -> str:
    return digest(tensors_of(world, kind, True))


def digest_of_a_flip(world: World, kind: str) -> str:
    """The same with the lowest bit of one number changed, on the last rank."""
    tensors = tensors_of(world, kind, True)
    if world.rank == world.size - 1:
        local = next(
            part for tensor in reversed(list(tensors.values())) if (part := _local(tensor)).numel() and part.dtype == torch.float32
        )
        local.view(-1).view(torch.int32)[0] ^= 1
    return digest(tensors)


def spread_run(world: World, root: str, target: str) -> Any:
    """The checkpoints of a run of one process, as two or more processes would have written them."""
    mesh = init_device_mesh("cpu", (world.size,))
    for step, folder in sorted(candidates(Path(root))):
        found = checkpoint.Checkpoint(folder, step, json.loads((folder / STATE).read_bytes()))
        tensors: dict[str, Tensor] = {}
        for name, tensor in found.tensors().items():
            cut = tensor.dim() and not name.startswith("chance")
            tensors[name] = distribute_tensor(tensor, mesh, [Shard(0)]) if cut else tensor
        checkpoint.save(Path(target), step, tensors, found.state, 9, world)
    return len(candidates(Path(target)))
