"""Nothing in the package can run what a file says: no unpickling, no code from text, no module or command that data names.

What a file may be is JSON, TOML, SafeTensors, SentencePiece, Parquet, XML or text. The one reader of pickles, torch's with its allow-list
of tensors, is asked with weights_only=True.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from house_rules import parse

ROOT = Path(__file__).parents[1]
# Benchmarks and claims run programs of others on purpose, but read no file that this gate would let through.
SOURCES = sorted(path for room in ("src/limelight", "benchmarks", "claims", "examples") for path in (ROOT / room).rglob("*.py"))

# Full names, as they are written or imported.
BANNED = re.compile(
    r"""
      (dill|marshal|shelve|cloudpickle|joblib|jsonpickle|runpy|_pickle|cPickle|pty) (\..*)?
    | pickle\. (?! (Unpickling|Pickling|Pickle)Error $ ) .*
    | yaml\. (?! safe_ | (YAMLError|SafeLoader|ScalarNode) $ ) .*
    | (builtins\.)? (eval|exec|compile|__import__|breakpoint)
    | os\. (system|popen|startfile|exec\w+|spawn\w+|posix_spawn\w*)
    | subprocess\. (getoutput|getstatusoutput)
    | torch\. ((jit|hub|export)\.load | hub(\..*)? | package(\..*)? | distributed\.checkpoint(\..*)?)
    | (.*\.)? (extractall|unpack_archive|create_subprocess_shell)    # members outside of the folder or without end; a shell
    | (.*\.)? (read_pickle|ImportString|add_safe_globals|spec_from_file_location|SourceFileLoader|exec_module)
    """,
    re.VERBOSE,
)
KNOWN_BY_NAME = {
    "pickle",
    "yaml",
    "os",
    "subprocess",
    "builtins",
    "torch",
    "numpy",
}  # what may not be imported as another
# Keywords that let a reader run code, and the value that does not.
KEYWORDS = {"allow_pickle": False, "weights_only": True, "shell": False, "trust_remote_code": False}

# torch.distributed.checkpoint unpickles, but not by these names: plans, and its reader of SafeTensors. One file has them, and was reviewed.
SHARDS = Path("src/limelight/training/checkpoints/shards.py")
REVIEWED = {
    "import torch.distributed.checkpoint.default_planner.DefaultLoadPlanner",
    "import torch.distributed.checkpoint.default_planner.create_default_local_save_plan",
    "import torch.distributed.checkpoint.hf_storage.HuggingFaceStorageReader",
    "import torch.distributed.checkpoint.metadata.TensorStorageMetadata",
}


def offences(text: str) -> list[str]:
    """What could run code out of a file, as `line: what`."""
    tree = parse(text)
    written = _assigned(tree)
    return [f"{getattr(node, 'lineno', 0)}: {what}" for node in ast.walk(tree) for what in (*_names(node), *_calls(node, written))]


def _dotted(node: ast.AST) -> str:
    """The name as it is written, "np.lib.load"; of anything that begins otherwise, its end."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            hidden = alias.asname not in (None, "np") and alias.name in KNOWN_BY_NAME
            if hidden or BANNED.fullmatch(alias.name):
                yield f"import {alias.name}"
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            if BANNED.fullmatch(name) or name in ("torch.load", "numpy.load"):  # these are known by their full name
                yield f"import {name}"
    elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load) and BANNED.fullmatch(_dotted(node)):
        yield _dotted(node)


def _calls(node: ast.AST, written: Mapping[str, list[ast.expr]]) -> Iterator[str]:
    if not isinstance(node, ast.Call):
        return
    name, given = _dotted(node.func), {word.arg: word.value for word in node.keywords}
    for word, harmless in KEYWORDS.items():
        value = given.get(word)
        if value is not None and not (isinstance(value, ast.Constant) and value.value is harmless):
            yield f"{word} that is not {harmless}"
    if name == "torch.load" and "weights_only" not in given:
        yield "torch.load without weights_only=True"
    if name in ("np.load", "numpy.load") and (None in given or len(node.args) > 2):
        yield f"{name} with arguments that cannot be seen"
    if name.split(".")[-1] == "import_module" and not (node.args and _is_written(node.args[0], written)):
        yield f"{name} of a name that may come from data"
    if any(isinstance(word, ast.Name) and word.id == "pickle" for word in (*node.args, *given.values())):
        yield "pickle handed on"


def _assigned(tree: ast.AST) -> dict[str, list[ast.expr]]:
    """Every value that a plain name is given by `name = value`; one that it gets in another way is no constant."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                found.setdefault(_dotted(target), []).append(node.value)
        elif isinstance(node, ast.arg):
            found.setdefault(node.arg, []).append(ast.Name(node.arg))
    return found


def _is_written(name: ast.expr, written: Mapping[str, list[ast.expr]]) -> bool:
    """A name that stands in the source, a choice of such, or one of ours whose end is chosen: f"limelight.bundle.{...}"."""
    if isinstance(name, ast.IfExp):
        return _is_written(name.body, written) and _is_written(name.orelse, written)
    if isinstance(name, ast.Name) and name.id in written:
        values = written[name.id]
        return all(not isinstance(value, ast.Name) and _is_written(value, written) for value in values)
    if isinstance(name, ast.JoinedStr) and name.values:
        first = name.values[0]
        return isinstance(first, ast.Constant) and str(first.value).startswith("limelight.")
    return isinstance(name, ast.Constant)


@pytest.mark.slow
def test_no_file_can_make_the_package_run_code() -> None:
    named = [path.relative_to(ROOT) for path in SOURCES]
    found = [f"{name}:{each}" for name in named for each in unreviewed(name, (ROOT / name).read_bytes().decode())]
    assert not found, "\n".join(found)


def unreviewed(path: Path, text: str) -> list[str]:
    return [found for found in offences(text) if path != SHARDS or found.split(": ", 1)[1] not in REVIEWED]


def test_what_was_reviewed_in_one_file_is_caught_in_others_and_nothing_else_is_let_through() -> None:
    reviewed = "from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader"
    assert not unreviewed(SHARDS, reviewed)
    assert unreviewed(SHARDS.with_name("loop.py"), reviewed)
    assert unreviewed(SHARDS, "from torch.distributed.checkpoint import load")
    assert unreviewed(SHARDS, "from torch.distributed.checkpoint import FileSystemReader")


@pytest.mark.parametrize(
    "planted",
    [
        "import pickle\npickle.load(file)",
        "import pickle\nread = pickle.loads",
        "import pickle\npickle.Unpickler(file).load()",
        "import pickle as p\np.load(file)",
        "from pickle import loads",
        "from _pickle import Unpickler",
        "import dill",
        "import marshal",
        "import shelve",
        "from joblib import load",
        "import cloudpickle",
        "import yaml\nyaml.load(text)",
        "import yaml\nyaml.load(text, Loader=yaml.SafeLoader)",
        "import yaml as y",
        "import torch as t\nt.load(path)",
        "import os as o\no.system(line)",
        "from yaml import full_load",
        "np.load(path, allow_pickle=True)",
        "np.load(path, None, True)",
        "np.load(path, **more)",
        "np.lib.format.read_array(file, allow_pickle=wanted)",
        "from numpy import load",
        "torch.load(path)",
        "torch.load(path, 'cpu', pickle)",
        "torch.load(path, weights_only=False)",
        "torch.load(path, weights_only=wanted)",
        "torch.load(path, **options)",
        "torch.jit.load(path)",
        "torch.hub.load(repository, name)",
        "torch.serialization.add_safe_globals([os.system])",
        "from torch import load",
        "import torch.distributed.checkpoint as dcp",
        "from torch.distributed import checkpoint",
        "from torch.distributed.checkpoint import load",
        "eval(text)",
        "run = eval",
        "exec(text)",
        "import builtins\nbuiltins.exec(text)",
        "compile(text, 'name', 'exec')",
        "__import__(name)",
        "importlib.import_module(config['class'])",
        "import_module(name)",
        "import_module(f'{package}.model')",
        "import_module('a' if fine else name)",
        "name = file.read()\nimport_module(name)",
        "name = 'a'\nname = data['b']\nimport_module(name)",
        "def load(name): return import_module(name)",
        "importlib.util.spec_from_file_location('x', path)",
        "subprocess.run(line, shell=True)",
        "subprocess.Popen(line, shell=wanted)",
        "subprocess.getoutput(line)",
        "os.system(line)",
        "os.popen(line)",
        "os.execv(path, words)",
        "os.spawnl(mode, path)",
        "asyncio.create_subprocess_shell(line)",
        "AutoModel.from_pretrained(name, trust_remote_code=True)",
        "pandas.read_pickle(path)",
        "tarfile.open(path).extractall(folder)",
        "shutil.unpack_archive(path, folder)",
        "class C(BaseModel):\n    made_by: ImportString",
    ],
)
def test_a_planted_way_to_run_code_is_caught(planted: str) -> None:
    assert offences(planted)


@pytest.mark.parametrize(
    "allowed",
    [
        "model.eval()",
        "re.compile('a')",
        "block.compile()",
        "class C:\n    compile: bool = False",
        "import pickle\ntry: pass\nexcept pickle.UnpicklingError: pass",
        "from pickle import UnpicklingError",
        "json.load(file)",
        "yaml.safe_load(text)",
        "np.load(path)",
        "np.load(path, mmap_mode='r', allow_pickle=False)",
        "torch.load(path, map_location='cpu', weights_only=True)",
        "Translator.load(folder)",
        "import_module('huggingface_hub')",
        "import_module('a' if fine else 'b')",
        "file = 'a' if fine else 'b'\nimport_module(file)",
        "platform.system()",
        "import_module(f'limelight.bundle.{name}')",
        "subprocess.run(['git', 'describe'], shell=False)",
        "column.list.eval(shape)",
    ],
)
def test_what_runs_nothing_is_allowed(allowed: str) -> None:
    assert not offences(allowed)
