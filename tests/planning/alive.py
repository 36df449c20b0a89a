"""Counts the bytes of tensors that are alive, and the most that ever were."""

import weakref
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter


class Alive(TorchDispatchMode):
    """Bytes of the tensors that operators made and that somebody still holds."""

    def __init__(self, others: list[torch.Tensor]) -> None:
        super().__init__()
        self.now, self.most = 0, 0
        self._sizes: dict[int, int] = {}
        self._others = {tensor.untyped_storage()._cdata for tensor in others}

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_iter(result):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                key = storage._cdata
                if key not in self._sizes and key not in self._others and storage.nbytes():
                    self._sizes[key] = storage.nbytes()
                    self.now += storage.nbytes()
                    self.most = max(self.most, self.now)
                    weakref.finalize(storage, self._gone, key)
        return result

    def _gone(self, key: int) -> None:
        self.now -= self._sizes.pop(key)
