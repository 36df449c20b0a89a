"""The house, counted: rooms, names and lines, by reading the code alone.

python benchmarks/house.py             the table
python benchmarks/house.py --names     and each name that is meant
python benchmarks/house.py --root DIR  of another checkout, to compare
"""

import argparse
import ast
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MOST_FILES: Final = 14  # in one folder, `__init__` not counted
LARGE: Final = ("model", "decoding")  # every file there has the paper's or the field's name
# Past participles that do not end in -ed; those that are verbs too (read, cut, put, set, split, hit) are none here.
IRREGULAR: Final = frozenset((
    "bent", "begun", "bound", "broken", "brought", "built", "caught", "chosen", "come", "done", "drawn", "driven",
    "fallen", "felt", "found", "frozen", "given", "gone", "grown", "heard", "held", "hidden", "kept", "known",
    "laid", "learnt", "led", "left", "lent", "lit", "lost", "made", "meant", "met", "paid", "said", "seen", "sent",
    "shown", "spent", "spoken", "stood", "sought", "stuck", "sunk", "taken", "taught", "thought", "thrown", "told",
    "torn", "understood", "undone", "won", "worn", "woven", "written",
))  # fmt: skip
VERBS: Final = frozenset(["embed", "feed", "need", "seed", "shed", "speed", "exceed", "proceed", "succeed", "bleed", "breed"])


@dataclass(frozen=True)
class SourceFile:
    module: str  # limelight.model.attention
    path: Path
    tree: ast.Module

    @property
    def box(self) -> tuple[str, str]:
        """The room, and the sub-package or file inside it."""
        room, _, rest = self.module.partition(".")[2].partition(".")
        return room, rest.partition(".")[0]


@dataclass(frozen=True)
class House:
    files: list[SourceFile]

    @classmethod
    def read(cls, root: Path) -> "House":
        source = root / "src"
        paths = [path for path in sorted((source / "limelight").rglob("*.py")) if "page" not in path.parent.parts[-1:]]
        files = []
        for path in paths:
            parts = path.relative_to(source).with_suffix("").parts
            files.append(SourceFile(".".join(parts).removesuffix(".__init__"), path, ast.parse(path.read_text("utf-8"))))
        return cls(files)

    def lines(self) -> int:
        return sum(len(file.path.read_text("utf-8").splitlines()) for file in self.files)

    def folders(self) -> Counter[str]:
        """Files of each folder, `__init__` not counted."""
        inside = [file for file in self.files if file.path.name != "__init__.py"]
        return Counter(file.module.rpartition(".")[0] for file in inside)

    def classes(self) -> dict[str, list[str]]:
        """Modules by the public class names that they define."""
        found: dict[str, list[str]] = defaultdict(list)
        for file in self.files:
            for node in file.tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(file.module)
        return found

    def large_folders(self) -> dict[str, int]:
        counts = {name.removeprefix("limelight."): count for name, count in self.folders().items()}
        return {name: count for name, count in counts.items() if count > MOST_FILES and name not in LARGE}

    def names_used_twice(self) -> dict[str, list[str]]:
        return {name: modules for name, modules in self.classes().items() if len(modules) > 1}

    def participles(self) -> list[str]:
        """Functions and methods named by what was done; properties, classmethods and what a framework calls are left out."""
        return [f"{file.module}:{name}" for file in self.files for name in _participles(file.tree)]

    def arrows(self, room: str) -> int:
        """Pairs of sub-packages or files of a room of which one imports the other."""
        boxes = {file.module: file.box for file in self.files}
        pairs = set()
        for file in self.files:
            for imported in _imports(file.tree):
                there = boxes.get(imported) or boxes.get(imported.rpartition(".")[0])
                if there and file.box[0] == there[0] == room and file.box != there and there[1] and file.box[1]:
                    pairs.add((file.box, there))
        return len(pairs)


def is_participle(name: str) -> bool:
    """is_participle("shown") and is_participle("merged_rows"), but not is_participle("feed")."""
    first = name.strip("_").partition("_")[0]
    return first in IRREGULAR or (first.endswith("ed") and first not in VERBS and len(first) > 4)


def _participles(tree: ast.Module) -> list[str]:
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_participle(node.name):
            found.append(node.name)
        if isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
            found += [f"{node.name}.{each.name}" for each in methods if is_participle(each.name) and not _is_noun(each)]
    return found


def _is_noun(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A property or another constructor may have a noun's name, and a predicate a participle's: `if span.kept(...)` is a question."""
    names = {ast.unparse(each).rpartition(".")[2].partition("(")[0] for each in method.decorator_list}
    if names & {"property", "cached_property", "classmethod", "validator", "model_validator", "field_validator"}:
        return True
    return method.returns is not None and ast.unparse(method.returns) == "bool"


def _imports(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def measure(house: House) -> dict[str, str]:
    others = {name: count for name, count in house.folders().items() if name.removeprefix("limelight.") not in LARGE}
    name, most = max(others.items(), key=lambda item: item[1])
    return {
        "lines of the package": f"{house.lines():,} in {len(house.files)} files",
        "largest folder, without model and decoding": f"{most} files ({name})",
        f"folders of more than {MOST_FILES} files": str(len(house.large_folders())),
        "public class names used twice or more": f"{len(house.names_used_twice())} of {len(house.classes())}",
        "functions named by a participle": str(len(house.participles())),
        "arrows between the parts of training": str(house.arrows("training")),
        "arrows between the parts of serving": str(house.arrows("serving")),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--names", action="store_true")
    asked = parser.parse_args()
    house = House.read(asked.root)
    for what, value in measure(house).items():
        print(f"{what:44} {value}")
    if asked.names:
        print("\n".join(f"{name}: {' '.join(modules)}" for name, modules in house.classes().items() if len(modules) > 1))
        print("\n".join(house.participles()))


if __name__ == "__main__":
    main()
