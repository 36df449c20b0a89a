"""Graphs get smaller: weights are stored as uint8, and what the encoder and the decoder both hold is stored once.

    y = x W          ->   round(x / a) (W_q - 128) * a s      a of each x, when it comes; s of each column of W, stored
    embedding[ids]   ->   (table_q[ids] - 128) s[ids]         the same bytes as the output layer has, where they are tied

Scales are one for each column, and for a table one for each piece, so that rare pieces do not pay for loud ones.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

ZERO, MOST = 128, 127  # uint8 in the middle, and the steps to either side
SHARED_FROM = 4096  # bytes: smaller tensors are not worth a place of their own
SIDES = ("encoder", "decoder")


def name_of(side: str, numbers: str) -> str:
    return f"{side}.{numbers}.onnx"


def write_numbers(folder: Path, traced: Path, numbers: str) -> list[str]:
    """Both graphs of `traced` in these numbers ("float32" or "uint8"), and beside them what they share. The names of the files."""
    graphs = {side: onnx.load(traced / f"{side}.onnx") for side in SIDES}
    for model in graphs.values():
        if numbers == "uint8":
            quantize(model.graph)
    shared = f"shared.{numbers}"
    content = share([model.graph for model in graphs.values()], shared)
    files = {name_of(side, numbers): model.SerializeToString(deterministic=True) for side, model in graphs.items()}
    files |= {shared: content} if content else {}
    for name, written in files.items():
        (folder / name).write_bytes(written)
    return list(files)


def quantize(graph: Any) -> None:
    """In place: every product with a stored matrix, and every look-up in one that has a row for each piece."""
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    matrices = {name for name, array in stored.items() if array.ndim == 2 and array.dtype == np.float32}
    tables = {node.input[0] for node in graph.node if node.op_type == "Gather" and node.input[0] in matrices}
    made: dict[str, list[Any]] = {"nodes": [], "tensors": [_tensor("zero", np.uint8(ZERO)), _tensor("zero_float", np.float32(ZERO))]}
    known = set[str]()
    for node in graph.node:
        weight = node.input[0] if node.op_type == "Gather" else node.input[1] if node.op_type in ("MatMul", "Gemm") else ""
        if weight not in matrices:
            made["nodes"].append(node)
            continue
        by_row = weight in tables  # else by column; a Gemm of torch has the columns of the product as rows
        turned = node.op_type == "Gemm" and next((a.i for a in node.attribute if a.name == "transB"), 0) == 1
        if weight not in known:
            array = stored[weight].T if turned and not by_row else stored[weight]
            made["tensors"] += _store(weight, array, axis=1 if by_row else 0)
            known.add(weight)
        if node.op_type == "Gather":
            made["nodes"] += _look_up(node, weight)
            continue
        if node.input[0] not in known:
            outputs = [f"{node.input[0]}.in.{part}" for part in ("q", "scale", "zero")]
            made["nodes"].append(helper.make_node("DynamicQuantizeLinear", [node.input[0]], outputs))
            known.add(node.input[0])
        made["nodes"] += _multiply(node, weight, by_row)
    used = {name for node in made["nodes"] for name in node.input}
    kept = [tensor for tensor in (*graph.initializer, *made["tensors"]) if tensor.name in used]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(made["nodes"])
    graph.initializer.extend(kept)


def share(graphs: list[Any], location: str) -> bytes:
    """Take out what all graphs hold, byte by byte, and leave in each where it lies in the file `location`. The content of that file."""
    places: list[dict[tuple[Any, ...], Any]] = [{_key(t): t for t in graph.initializer if _size(t) >= SHARED_FROM} for graph in graphs]
    content = bytearray()
    for key in places[0]:
        if not all(key in place for place in places):
            continue
        raw = numpy_helper.to_array(places[0][key]).tobytes()
        content += b"\0" * (-len(content) % 64)
        for place in places:
            tensor = place[key]
            dims, kind, name = list(tensor.dims), tensor.data_type, tensor.name
            tensor.Clear()
            tensor.dims.extend(dims)
            tensor.data_type, tensor.name, tensor.data_location = kind, name, onnx.TensorProto.EXTERNAL
            for field, value in (("location", location), ("offset", len(content)), ("length", len(raw))):
                tensor.external_data.add(key=field, value=str(value))
        content += raw
    return bytes(content)


def _store(name: str, array: Any, axis: int) -> Iterator[Any]:
    """A matrix as uint8, with a scale for each column (axis 0) or row (axis 1)."""
    scale = np.maximum(np.abs(array).max(axis=axis), np.finfo(np.float32).tiny) / np.float32(MOST)
    whole = np.rint(array / (scale if axis == 0 else scale[:, None])) + ZERO
    yield _tensor(f"{name}.q", np.ascontiguousarray(whole.astype(np.uint8)))
    yield _tensor(f"{name}.scale", scale.astype(np.float32))


def _look_up(node: Any, weight: str) -> list[Any]:
    ids, out = node.input[1], node.output[0]
    return [
        helper.make_node("Gather", [f"{weight}.q", ids], [f"{out}.rows"]),
        helper.make_node("Cast", [f"{out}.rows"], [f"{out}.float"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Sub", [f"{out}.float", "zero_float"], [f"{out}.steps"]),
        helper.make_node("Gather", [f"{weight}.scale", ids], [f"{out}.scales"]),
        helper.make_node("Constant", [], [f"{out}.last"], value_ints=[-1]),
        helper.make_node("Unsqueeze", [f"{out}.scales", f"{out}.last"], [f"{out}.column"]),
        helper.make_node("Mul", [f"{out}.steps", f"{out}.column"], [out]),
    ]


def _multiply(node: Any, weight: str, by_row: bool) -> list[Any]:
    x, out = node.input[0], node.output[0]
    biased = len(node.input) > 2
    matrix = f"{out}.turned" if by_row else f"{weight}.q"
    turned = [helper.make_node("Transpose", [f"{weight}.q"], [matrix], perm=[1, 0])] if by_row else []
    product = f"{out}.product" if biased else out
    return [
        *turned,
        helper.make_node("MatMulInteger", [f"{x}.in.q", matrix, f"{x}.in.zero", "zero"], [f"{out}.whole"]),
        helper.make_node("Cast", [f"{out}.whole"], [f"{out}.float"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Mul", [f"{x}.in.scale", f"{weight}.scale"], [f"{out}.scale"]),
        helper.make_node("Mul", [f"{out}.float", f"{out}.scale"], [product]),
        *([helper.make_node("Add", [product, node.input[2]], [out])] if biased else []),
    ]


def _tensor(name: str, array: Any) -> Any:
    return numpy_helper.from_array(np.asarray(array), name)


def _key(tensor: Any) -> tuple[Any, ...]:
    array = numpy_helper.to_array(tensor)
    return str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).digest()


def _size(tensor: Any) -> int:
    return int(numpy_helper.to_array(tensor).nbytes)
