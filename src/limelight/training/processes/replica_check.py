"""Replicas of tensors are compared between processes, so that a flipped bit is found before it is saved.

Every process adds up the bits of its tensors as whole numbers, which any single flip changes. Processes are compared when they hold the
same part: all of them under ddp, those of other groups under hybrid, nobody under fsdp. Those that cut products between them (tensor) are
not compared with each other: what both hold they computed apart, in an order of additions that a device need not keep.

With three or more the majority is believed. Of two nobody knows who is right; both go on from the last checkpoint, which was compared too.
"""

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from limelight.errors import LimelightError
from limelight.planning.cost.parallel import Parallel
from limelight.training.processes.world import World

WHOLE_NUMBERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
BITS = 1 << 64  # as many as a sum has: with fewer, a flip in the highest would be lost


def refuse_differing(world: World, parallel: Parallel, tensors: Mapping[str, Tensor], step: int) -> None:
    """Nothing happens as long as all is well. The run ends otherwise, so that a launcher starts it again from the last checkpoint."""
    if world.size == 1 or parallel.replicas == 1:
        return
    sums = bit_sums(tensors)
    mine = _by_part(sums, tensors, world.rank % parallel.tensor)
    told: list[dict[str, int]] = world.gather({part: _combine_sums(some) for part, some in mine.items()})
    wrong = {part: ranks for part in sorted({part for each in told for part in each}) if (ranks := _find_differing(told, part))}
    if not wrong:
        return
    part, ranks = next(iter(wrong.items()))
    named = _names(world.gather(mine.get(part)), [rank for rank, each in enumerate(told) if part in each])
    raise LimelightError(
        f"{ranks} at step {step:,}: {named}. A memory or a processor is at fault, or machines of different kinds were mixed. Nothing of "
        "this step was saved; start again, and the run goes on from the last checkpoint, where all were the same"
    )


def bit_sums(tensors: Mapping[str, Tensor]) -> dict[str, int]:
    """Of each tensor the bits of what this process holds of it, added up as whole numbers."""
    sums = []
    for tensor in tensors.values():
        local = (tensor.to_local() if isinstance(tensor, DTensor) else tensor).detach().contiguous().view(-1)
        if local.storage_offset() * local.element_size() % 8:
            local = local.clone()  # only what begins at a whole word can be read as such
        width = 8 if local.nbytes % 8 == 0 else local.element_size()  # the widest is the fastest: nothing is converted
        sums.append(local.view(WHOLE_NUMBERS[width]).sum(dtype=torch.int64).cpu())
    return dict(zip(tensors, torch.stack(sums).tolist() if sums else [], strict=True))


def _by_part(sums: Mapping[str, int], tensors: Mapping[str, Tensor], column: int) -> dict[str, dict[str, int]]:
    parts: dict[str, dict[str, int]] = defaultdict(dict)
    for name, tensor in tensors.items():
        parts[f"{column} {_part(tensor)}"][name] = sums[name]
    return parts


def _part(tensor: Tensor) -> str:
    """Which part of a tensor that is cut this process holds: "0:3", the fourth along the first axis of the mesh."""
    if not isinstance(tensor, DTensor):
        return ""
    places: Sequence[int] = tensor.device_mesh.get_coordinate() or ()
    cuts = zip(places, tensor.placements, strict=False)
    return " ".join(f"{axis}:{place}" for axis, (place, cut) in enumerate(cuts) if not cut.is_replicate())


def _combine_sums(sums: Mapping[str, int]) -> int:
    """One number for all; each name has a factor of its own, so that a swap is seen too."""
    return sum(value * (2 * zlib.crc32(name.encode()) + 1) for name, value in sums.items()) % BITS


def _find_differing(told: list[dict[str, int]], part: str) -> str | None:
    """Who differs, in words; None if nobody does."""
    held = {rank: each[part] for rank, each in enumerate(told) if part in each}
    if len(set(held.values())) <= 1:
        return None
    value, votes = Counter(held.values()).most_common(1)[0]
    if 2 * votes <= len(held):
        return f"{_list_ranks(held)} hold different tensors"
    odd = [rank for rank, other in held.items() if other != value]
    return f"{_list_ranks(odd)} {'holds' if len(odd) == 1 else 'hold'} other tensors than the majority of {len(held)}"


def _names(told: list[Any], ranks: list[int]) -> str:
    names = [name for name in told[ranks[0]] if len({told[rank][name] for rank in ranks}) > 1]
    return f"{', '.join(names[:5])}{f' and {len(names) - 5} more' if len(names) > 5 else ''}"


def _list_ranks(ranks: Iterable[int]) -> str:
    """ "rank 2", "ranks 0 and 1", "ranks 0, 1 and 5" """
    words = [str(rank) for rank in ranks]
    return f"ranks {', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else f"rank {words[0]}"
