"""A server of S3 in a process of its own: moto, in memory, with a bucket called `bucket`.

moto needs other versions of packages than we do, so it is no package of ours: `pip install moto[s3] flask flask-cors` in an environment
of its own, and MOTO_SERVER says where its moto_server is, unless it is on the PATH.
"""

import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from limelight.runtime import end_process

SERVER = os.environ.get("MOTO_SERVER") or shutil.which("moto_server")


@contextmanager
def serving_s3() -> Iterator[int]:
    """Its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([str(SERVER), "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    request = urllib.request.Request(f"http://127.0.0.1:{port}/bucket", method="PUT")
    latest = time.monotonic() + 120
    try:
        while True:
            with suppress(OSError):
                urllib.request.urlopen(request, timeout=5).close()
                break
            if process.poll() is not None or time.monotonic() > latest:
                raise RuntimeError(f"{SERVER} did not start")
            time.sleep(0.2)
        yield port
    finally:
        end_process(process)


def environment(port: int) -> dict[str, str]:
    """The variables by which it is found."""
    return {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
