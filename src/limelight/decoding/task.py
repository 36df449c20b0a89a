"""A batch of requests as tensors: sources, limits and prefixes, of the sentences that are still being translated."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import torch
from torch import Tensor

from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import Request, Specials
from limelight.errors import DataError

NOTHING = -1  # where a row of ids is shorter than the longest


@dataclass(frozen=True)
class Task:
    """B sentences. `number` is the place of each in the request, which it keeps when others have left."""

    number: Tensor  # (B,)
    source: Tensor  # (B, S) ids with their end if they have one, padded
    least: Tensor  # (B,) fewest pieces before the end
    limit: Tensor  # (B,) most pieces, the end included
    prefix: Tensor  # (B, P) ids that come first, then NOTHING
    given: Tensor  # (B,) so many of them have log-probability 0
    longest_least: int  # these two as numbers of the host, so that no step asks a device
    longest: int
    highest_id: int  # of the prefixes and phrases

    def __len__(self) -> int:
        return len(self.number)

    def select(self, sentences: Tensor) -> Self:
        """Only these stay."""
        rows = {f.name: getattr(self, f.name) for f in fields(self) if isinstance(getattr(self, f.name), Tensor)}
        return replace(self, **{name: tensor.index_select(0, sentences) for name, tensor in rows.items()})


def make_task(
    requests: Sequence[Request],
    settings: SearchSettings,
    specials: Specials,
    device: torch.device,
    lengths: Sequence[int] | None = None,
) -> Task:
    """`lengths` fixes the number of pieces of each translation, for tests and benchmarks."""
    _check(requests, specials)
    source = padded([specials.ended(request.source) for request in requests], specials.pad)
    if lengths is None:
        limit = [max(settings.limit(len(r.source)), room_for(r)) for r in requests]
        least = [settings.min_length] * len(requests)
    else:
        limit = least = list(lengths)
    return Task(
        number=torch.arange(len(requests), device=device),
        source=source.to(device),
        least=torch.tensor(least, device=device),
        limit=torch.tensor(limit, device=device),
        given=torch.tensor([request.given for request in requests], device=device),
        prefix=padded([request.prefix for request in requests], NOTHING).to(device),
        longest_least=max(least),
        longest=max(limit),
        highest_id=max((i for r in requests for ids in (r.prefix, *r.phrases) for i in ids), default=0),
    )


def padded(rows: Sequence[Sequence[int]], filler: int) -> Tensor:
    """padded([[5, 6], []], 0) -> [[5, 6], [0, 0]]"""
    width = max(map(len, rows), default=0)
    return torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows], dtype=torch.long).view(
        len(rows), width
    )


def room_for(request: Request) -> int:
    """Pieces that a translation needs to hold its prefix, all its phrases and the end."""
    return len(request.prefix) + sum(map(len, request.phrases)) + 1


def _check(requests: Sequence[Request], specials: Specials) -> None:
    """Every problem at once."""
    reserved = {specials.pad: "padding", specials.start: "start", specials.end: "end"}
    problems = []
    for number, request in enumerate(requests):
        for what, ids in [("prefix", request.prefix), *(("phrase", phrase) for phrase in request.phrases)]:
            wrong = [reserved.get(i, f"{i} (no)") for i in ids if i in reserved or i < 0]
            if wrong:
                problems.append(f"the {what} of sentence {number} holds the {wrong[0]} piece, which no text has")
            if what == "phrase" and not ids:
                problems.append(f"a phrase of sentence {number} is empty; leave it out")
    if problems:
        raise DataError("this cannot be searched for:\n" + "\n".join(f"  - {problem}" for problem in problems))
