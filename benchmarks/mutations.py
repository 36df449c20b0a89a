"""Small faults in Python source, one place at a time: found by the syntax tree, made in the text, so that all else stays as it is.

mutations("a.py", "x = a < b\\n")     ->  [Mutation("a.py", 1, 4, 1, 9, old="Lt", new="LtE", text="(a <= b)")]
applied("x = a < b\\n", that one)     ->  "x = (a <= b)\\n"
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.MatMult: ast.Mult,
}  # fmt: skip

TYPES = ("bool", "bytes", "dict", "float", "int", "list", "set", "str", "tuple")


@dataclass(frozen=True)
class Mutation:
    """What stands at line and column (both as the tree counts them, in bytes), so many bytes long, becomes `text`."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    old: str
    new: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}:{self.column}-{self.end_line}:{self.end_column} {self.old} -> {self.new}"


def applied(source: str, mutation: Mutation) -> str:
    lines = source.encode().split(b"\n")
    first, last = mutation.line - 1, mutation.end_line - 1
    before, after = lines[first][: mutation.column], lines[last][mutation.end_column :]
    lines[first : last + 1] = [before + mutation.text.encode() + after]
    return b"\n".join(lines).decode()


def mutations(file: str, source: str) -> list[Mutation]:
    """Every place that can be changed. Annotations, docstrings, messages of errors and what only a type checker reads are left alone."""
    tree = ast.parse(source)
    found = []
    for node in _reachable(tree):
        for old, new, text in _changes(node):
            end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
            found.append(Mutation(file, node.lineno, node.col_offset, end_line, end_column, old, new, text))
    return found


def _reachable(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Children whose change can change what the program does."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "type_params", "decorator_list") or isinstance(node, ast.Raise | ast.Import | ast.ImportFrom):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _says_nothing(child):
                continue
            if isinstance(child, ast.expr | ast.stmt):
                yield child
            if not isinstance(child, ast.JoinedStr):
                yield from _reachable(child)


def _says_nothing(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True  # a docstring
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return True
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Field", "TypeVar", "Literal")


def _changes(node: ast.expr | ast.stmt) -> Iterator[tuple[str, str, str]]:
    """(old, new, the whole expression as it is written afterwards)"""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and (other := COMPARED.get(type(node.ops[0]))):
        changed: ast.expr = ast.Compare(node.left, [other()], node.comparators)
        yield type(node.ops[0]).__name__, other.__name__, _written(changed)
    elif isinstance(node, ast.BinOp) and (operator := COMPUTED.get(type(node.op))) and not (_is_text(node) or _is_type(node)):
        yield type(node.op).__name__, operator.__name__, _written(ast.BinOp(node.left, operator(), node.right))
    elif isinstance(node, ast.BoolOp):
        turned = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield type(node.op).__name__, type(turned).__name__, _written(ast.BoolOp(turned, node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not", "", _written(node.operand)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield str(node.value), str(not node.value), str(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield str(node.value), str(node.value + 1), str(node.value + 1)
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield "return", "return None", "return None"


def _written(expression: ast.expr) -> str:
    """In parentheses, so that it binds as the tree says."""
    return f"({ast.unparse(ast.fix_missing_locations(expression))})"


def _is_text(node: ast.BinOp) -> bool:
    """Joining and formatting text; its change would be an error that every test notices."""
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in (node.left, node.right)
    )


def _is_type(node: ast.BinOp) -> bool:
    """`int | None` where it is written as a value: its change is an error when the file is loaded."""
    names = [side.value if isinstance(side, ast.Subscript) else side for side in (node.left, node.right)]
    return isinstance(node.op, ast.BitOr) and any(
        (isinstance(side, ast.Constant) and side.value is None)
        or (isinstance(side, ast.Name) and (side.id in TYPES or (side.id[:1].isupper() and not side.id.isupper())))
        for side in names
    )
