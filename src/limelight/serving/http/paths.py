"""The path of a request is stripped of the prefix of a proxy."""

from starlette.types import Scope


def path_of(scope: Scope) -> str:
    """Cut off the prefix of `root_path`, unless a proxy before us has done so: with /mt, /mt/translate -> /translate."""
    path: str = scope["path"]
    prefix = scope.get("root_path", "")
    return path[len(prefix) :] if prefix and (path + "/").startswith(prefix + "/") else path
