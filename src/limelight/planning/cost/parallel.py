"""A `Parallel` says how processes share one model: which of them hold the same weights, and which hold parts.

ddp       every process has all weights; gradients are added up                         the fastest while one device holds it all
fsdp      weights, gradients and moments are cut over all processes (Zhao et al. 2023)  a model that one device cannot hold
hybrid    cut within each group of `shards`, the same in every group                    the fast wires inside a machine carry the most
tensor    each product is cut over `tensor` processes that see the same text            models whose single layers are large
          (Shoeybi et al. 2019), and fsdp over the groups
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["alone", "ddp", "fsdp", "hybrid", "tensor"]
Precision = Literal["float32", "autocast", "masters"]


@dataclass(frozen=True)
class Parallel:
    """A layout is replicas x shards x tensor processes. Those that differ in `tensor` alone see the same text."""

    kind: Kind = "alone"
    replicas: int = 1
    shards: int = 1
    tensor: int = 1

    @property
    def size(self) -> int:
        return self.replicas * self.shards * self.tensor

    @property
    def data_size(self) -> int:
        return self.replicas * self.shards

    def data_rank(self, rank: int) -> int:
        return rank // self.tensor

    @property
    def described(self) -> str:
        """Parallel("fsdp", shards=8).described -> "fsdp: weights cut over 8" """
        return {
            "alone": "one process",
            "ddp": f"ddp: {self.replicas} with all weights",
            "fsdp": f"fsdp: weights cut over {self.shards}",
            "hybrid": f"hybrid: weights cut over {self.shards}, in {self.replicas} groups",
            "tensor": f"tensor: products cut over {self.tensor}, weights over {self.shards}",
        }[self.kind]

    @property
    def sharded(self) -> bool:
        return self.kind in ("fsdp", "hybrid", "tensor")
