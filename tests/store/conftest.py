"""Stores of both databases, each test with a new one. PostgreSQL is Debian's, in a cluster of its own on a socket of its own."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from limelight.store.store import Store, open_store

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1:]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path}/store.db")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def cluster(starts_process: None) -> Iterator[str]:
    """postgresql:///?host=FOLDER&user=..., without a database's name."""
    if not PROGRAMS:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # a socket's path has at most 107 bytes
    user, before = "postgres", ["runuser", "-u", "postgres", "--"]
    if os.geteuid() == 0:  # it does not run as root
        shutil.chown(folder, user)
    else:
        user, before = pwd.getpwuid(os.geteuid()).pw_name, []

    def run(program: str, *arguments: str) -> None:
        subprocess.run([*before, str(PROGRAMS[0] / program), *arguments], check=True, capture_output=True, cwd="/")

    data = str(folder / "data")
    run("initdb", "--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "-D", data)
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off -c shared_buffers=32MB"
    run("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
    yield f"postgresql://{user}@/DATABASE?host={folder}"
    main = int((folder / "data" / "postmaster.pid").read_bytes().split(b"\n")[0])
    os.kill(main, signal.SIGQUIT)  # at once; pg_ctl would be a process of whichever test comes last
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.kill(main, 0)
            os.sched_yield()  # it takes milliseconds, and a test without a mark may not sleep
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgresql(cluster: str) -> str:
    """The URL of a new database."""
    import psycopg

    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(cluster.replace("DATABASE", "postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return cluster.replace("DATABASE", name)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path, starts_process: None) -> str:
    return f"sqlite:///{tmp_path}/store.db" if request.param == "sqlite" else request.getfixturevalue("postgresql")
