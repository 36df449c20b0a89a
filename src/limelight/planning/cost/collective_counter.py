"""A `CollectiveCounter` counts what is sent: every collective that goes through torch.distributed, with its bytes."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

# Which argument of an operator is the whole tensor: (operator, collective, place in the arguments; None: the result).
OPERATORS: dict[str, tuple[str, int | None]] = {
    "c10d._allgather_base_": ("all_gather", 0),
    "c10d.allgather_": ("all_gather", 0),
    "c10d.allgather_into_tensor_coalesced_": ("all_gather", 0),
    "_c10d_functional.all_gather_into_tensor": ("all_gather", None),
    "c10d._reduce_scatter_base_": ("reduce_scatter", 1),
    "c10d.reduce_scatter_": ("reduce_scatter", 1),
    "_c10d_functional.reduce_scatter_tensor": ("reduce_scatter", 0),
    "c10d.allreduce_": ("all_reduce", 0),
    "_c10d_functional.all_reduce": ("all_reduce", 0),
    "_c10d_functional.all_reduce_": ("all_reduce", 0),
    "c10d.broadcast_": ("broadcast", 0),
    "c10d.barrier": ("barrier", 0),
}
SENDS_NOTHING = frozenset({"_c10d_functional.wait_tensor", "_c10d_functional._wrap_tensor_autograd"})


@dataclass
class CollectiveCount:
    calls: int = 0
    payload: int = 0  # bytes of whole tensors


class CollectiveCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A counter has `counted[collective]`. Collectives that have no name here are an error, so that none is missed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counted: dict[str, CollectiveCount] = defaultdict(CollectiveCount)

    def __getitem__(self, collective: str) -> CollectiveCount:
        return self.counted[collective]

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = str(func).removesuffix(".default")
        if func.namespace in ("c10d", "_c10d_functional") and name not in SENDS_NOTHING:
            collective, place = OPERATORS[name]
            self.counted[collective].calls += 1
            tensors = [t for t in tree_iter(result if place is None else args[place]) if isinstance(t, Tensor)]
            self.counted[collective].payload += sum(t.numel() * t.element_size() for t in tensors)
        return result
