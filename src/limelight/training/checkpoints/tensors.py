"""A file of tensors is written whole, forced to disk, and compared bit by bit with what it should hold."""

import errno
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from limelight.bundle.weights import as_os_error
from limelight.files import whole_file


def write_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, str] | None = None) -> None:
    """A whole file, on disk, which was compared bit by bit with what it should hold.

    `header` has at most one entry: safetensors writes several in an order of chance, and equal checkpoints would differ.
    """
    plain = separate(tensors)
    with whole_file(path) as beside:
        try:
            save_file(plain, beside, dict(header) if header else None)
        except SafetensorError as error:
            raise as_os_error(error, path) from None
        beside.chmod(path.parent.stat().st_mode & 0o666)  # safetensors lets only the owner read
        # The manifest's hash is taken from the file; this is what ties the file to the tensors.
        same = {name for name, tensor in _iter_tensors(beside) if same_bits(tensor, plain[name])}
        if different := sorted(plain.keys() - same):
            raise OSError(errno.EIO, f"was not written as it should be: {', '.join(different[:9])}", str(path))


def read_tensors(path: Path) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in _iter_tensors(path)}  # not mapped: a run changes them in place


def names_in(path: Path) -> set[str]:
    try:
        with safe_open(path, "pt") as file:
            return set(file.keys())
    except SafetensorError as error:
        raise as_os_error(error, path) from None


def _iter_tensors(path: Path) -> Iterator[tuple[str, Tensor]]:
    try:
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118 (it is no dict)
                yield name, file.get_tensor(name)
    except SafetensorError as error:
        raise as_os_error(error, path) from None


def same_bits(one: Tensor, other: Tensor) -> bool:
    """torch.equal says that NaN differs from itself and that -0 is 0."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return torch.equal(one.reshape(-1).view(torch.uint8), other.reshape(-1).view(torch.uint8))


def separate(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """On the CPU and contiguous. Copied only if another name has the same memory, which safetensors refuses."""
    plain: dict[str, Tensor] = {}
    memories: set[int] = set()
    for name, tensor in tensors.items():
        here = tensor.detach().cpu().contiguous()
        memory = here.untyped_storage().data_ptr()
        plain[name] = here.clone() if memory in memories else here
        memories.add(memory)
    return plain
