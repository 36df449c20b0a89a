"""Python as it is on Windows, as far as the package can see, for every process that finds this file as sitecustomize.py on its PYTHONPATH.

Modules that Windows has not are not there, and neither are the names of `os`, `signal`, `select` and `sys` that it has not. That is so for
the package alone: what it stands on runs on this machine, and would not.
"""

import builtins
import errno
import fcntl as real_fcntl
import importlib
import os as real_os
import pathlib
import select as real_select
import signal as real_signal
import sys as real_sys
import types
from collections.abc import Sequence
from typing import Any

MISSING = ("fcntl", "grp", "pwd", "resource", "termios")
OF_OS = [
    "fork",
    "forkpty",
    "killpg",
    "getpgid",
    "setpgid",
    "setsid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getgroups",
    "sysconf",
    "sysconf_names",
    "sched_getaffinity",
    "sched_setaffinity",
    "wait",
    "waitid",
    "WNOHANG",
    "P_PID",
    "mkfifo",
    "getloadavg",
    "nice",
    "getpriority",
    "pread",
    "pwrite",
    "posix_fadvise",
    "sendfile",
    "uname",
    "fchmod",
    "chown",
    "statvfs",
    "O_NONBLOCK",
    "O_DIRECTORY",
    "O_NOFOLLOW",
    "O_CLOEXEC",
]
OF_SIGNAL = [
    "SIGKILL",
    "SIGHUP",
    "SIGCHLD",
    "SIGSTOP",
    "SIGTSTP",
    "SIGCONT",
    "SIGUSR1",
    "SIGUSR2",
    "SIGXCPU",
    "SIGALRM",
    "SIGPIPE",
    "SIGQUIT",
    "SIGWINCH",
    "pthread_sigmask",
    "pthread_kill",
    "sigwait",
    "alarm",
    "setitimer",
    "siginterrupt",
    "SIG_BLOCK",
    "SIG_UNBLOCK",
    "SIG_SETMASK",
]


class Seen(types.ModuleType):
    """A module as the package sees it."""

    def __init__(self, real: types.ModuleType, missing: Sequence[str], **otherwise: Any) -> None:
        super().__init__(real.__name__)
        self.__dict__["_real"], self.__dict__["_missing"] = real, frozenset(missing)
        self.__dict__.update(otherwise)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__["_missing"]:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} on Windows")
        return getattr(self.__dict__["_real"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_real"], name, value)


def _open(path: Any, flags: int, mode: int = 0o777) -> int:
    if pathlib.Path(path).is_dir():
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    return real_os.open(path, flags, mode)


def _fsync(number: int) -> None:
    if real_fcntl.fcntl(number, real_fcntl.F_GETFL) & real_os.O_ACCMODE == real_os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")
    real_os.fsync(number)


def _select(*lists: Any) -> Any:
    if any(isinstance(each, int) for some in lists[:3] for each in some):
        raise OSError(10038, "An operation was attempted on something that is not a socket")
    return real_select.select(*lists)


def _lock(number: int, mode: int, size: int) -> None:
    try:
        real_fcntl.flock(number, real_fcntl.LOCK_EX | real_fcntl.LOCK_NB)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "Permission denied") from None


SEEN = {
    "os": Seen(real_os, OF_OS, name="nt", O_BINARY=0, open=_open, fsync=_fsync),
    "signal": Seen(real_signal, OF_SIGNAL, SIGBREAK=real_signal.SIGUSR2),
    "select": Seen(real_select, ["poll", "epoll"], select=_select),
    "sys": Seen(real_sys, [], platform="win32"),
}
_exists = pathlib.Path.exists
msvcrt = types.SimpleNamespace(LK_NBLCK=2, locking=_lock)
_load, _import, _rename, _path_open = importlib.import_module, builtins.__import__, pathlib.Path.rename, pathlib.Path.open


def _import_as_seen(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    ours = not level and ((globals or {}).get("__package__") or "").partition(".")[0] == "limelight"
    if ours and name == "msvcrt":  # of nobody else: they tell by it where they are
        return msvcrt
    if ours and name in MISSING:
        raise ModuleNotFoundError(f"No module named {name!r} on Windows", name=name)
    found = _import(name, globals, locals, fromlist, level)
    if not ours:
        return found
    if name == "asyncio":
        from asyncio import unix_events

        unix_events._UnixSelectorEventLoop.add_signal_handler = _no_handler  # type: ignore[method-assign,assignment]
    return SEEN.get(name, found)


def _import_module(name: str, package: str | None = None) -> Any:
    if name in MISSING:
        raise ModuleNotFoundError(f"No module named {name!r} on Windows", name=name)
    return _load(name, package)


def _no_handler(*_: Any) -> None:
    raise NotImplementedError


def _rename_as_there(self: pathlib.Path, target: Any) -> pathlib.Path:
    if pathlib.Path(target).exists():
        raise FileExistsError(errno.EEXIST, "Cannot create a file when that file already exists", str(target))
    return _rename(self, target)


def _is_of_linux(path: pathlib.Path) -> bool:
    return str(path).startswith(("/proc/", "/sys/"))


def _open_as_there(self: pathlib.Path, *arguments: Any, **named: Any) -> Any:
    if _is_of_linux(self):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(self))
    return _path_open(self, *arguments, **named)


if real_os.environ.get("SIMULATE_WINDOWS"):
    real_sys.modules["uvloop"] = None  # type: ignore[assignment]  # for anybody: it is not made for Windows
    importlib.import_module = _import_module
    builtins.__import__ = _import_as_seen
    pathlib.Path.exists = lambda self, **named: not _is_of_linux(self) and _exists(self, **named)  # type: ignore[method-assign]
    pathlib.Path.rename, pathlib.Path.open = _rename_as_there, _open_as_there  # type: ignore[method-assign,assignment]
