"""The path that was asked for, as the routes know it."""

from starlette.types import Scope


def path_of(scope: Scope) -> str:
    """Without the prefix of `root_path`, which a proxy before us may have left in or cut off: with /mt, /mt/translate -> /translate."""
    path: str = scope["path"]
    prefix = scope.get("root_path", "")
    return path[len(prefix) :] if prefix and (path + "/").startswith(prefix + "/") else path
