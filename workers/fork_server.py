"""The program of the fork server: it loads what the parts of `callslip up` share, and forks them.

A request is a line of JSON on the standard input, which is a socket (`supervision.forking`); the
answer is the process id of the fork. This process has one thread when it forks, because a fork has
only the thread that forks; so it loads nothing that starts threads.
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from callslip import free_memory
from callslip.languages.ko.morphemes import MORPHEMES
from callslip.models.e5 import prepare
from callslip.models.e5.tokens import Tokenizer
from callslip.workers.supervision.forking import LOAD, LOADED, READY

MODULES = (
    "callslip.workers.app",
    "callslip.workers.presence",
    *("celery.apps.worker", "celery.worker.components", "celery.worker.consumer", "celery.beat"),
    *("celery.concurrency.prefork", "celery.concurrency.thread"),
)
"""What every part imports, or most of them.

The API imports the rest of what it needs itself, while this process loads the analyzer.
"""

_PR_SET_NAME = 15


def prepare_and_import(models_dir: Path, modules: list[str]) -> None:
    """Prepare the model; import the modules, and load the tokenizer."""
    if not prepare.is_prepared(models_dir):  # a separate process, whose end frees its memory
        subprocess.run((sys.executable, "-m", prepare.__name__, str(models_dir)), check=True)
    gc.disable()
    # The tokenizer needs the interpreter for a tenth of the time that it loads.
    with ThreadPoolExecutor(1) as thread:
        tokenizer = thread.submit(Tokenizer(models_dir).count, "warm")
        for module in (*MODULES, *modules):
            importlib.import_module(module)
        tokenizer.result()
    # A collection in a fork would write to these objects, and so copy their pages.
    gc.freeze()


def load() -> None:
    """Load the Korean analyzer, which the API does not need."""
    MORPHEMES.get().of("준비")
    free_memory.release()
    gc.freeze()


def serve(channel: socket.socket, load: Callable[[], None] = load) -> dict[str, Any] | None:
    """Fork at each request; return the request in the fork, and None at the end of the server.

    The request LOAD calls `load`. A fork whose id cannot be sent to the supervisor is ended.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, as inherited, no child is waited for
    channel.sendall(READY)
    for line in channel.makefile("rb"):
        request = cast(dict[str, Any], json.loads(line))
        if request == LOAD:
            load()
            answer = LOADED
        else:
            pid = _fork()
            if pid == 0:
                return request
            answer = b"%d" % pid
        try:
            channel.sendall(answer)
        except OSError:
            if answer != LOADED:
                with suppress(ProcessLookupError):  # it has ended already
                    os.killpg(pid, signal.SIGKILL)
            return None
    return None


def become(request: dict[str, Any]) -> None:
    """Run the program of a request in this process."""
    # 15 characters at most: what `ps -o comm` and `top` show.
    ctypes.CDLL(None).prctl(_PR_SET_NAME, f"callslip {request['name']}".encode(), 0, 0, 0)
    _use(os.open(os.devnull, os.O_RDONLY), 0)
    _use(os.open(request["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), 1, 2)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    module, *arguments = request["argv"]
    sys.argv = [module, *arguments]
    gc.enable()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _fork() -> int:
    """Fork twice, so that the supervisor adopts the process; return its id, and 0 in it."""
    read, write = os.pipe()
    between = os.fork()
    if between == 0:
        middle = os.getpid()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            os.close(write)
            while os.getppid() == middle:  # the program sees the supervisor as its parent
                time.sleep(0.001)
            return 0
        with suppress(OSError):  # it has ended already
            os.setpgid(pid, pid)
        os.write(write, b"%d" % pid)
        os._exit(0)
    os.close(write)
    pid = int(os.read(read, 20))
    os.close(read)
    os.waitpid(between, 0)
    return pid


def _use(file: int, *numbers: int) -> None:
    for number in numbers:
        os.dup2(file, number)
    os.close(file)


if __name__ == "__main__":
    prepare_and_import(Path(sys.argv[1]), sys.argv[2:])
    with socket.socket(fileno=0) as connection:
        wanted = serve(connection)
        if wanted is not None:
            connection.detach()
    if wanted is not None:
        become(wanted)
