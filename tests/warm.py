"""A process that has imported Keystead already, and forks itself for each program that is to run.

Importing is nearly all that a short command does. A program that is forked still has a process of its own, with its
own directory, environment, files and exit code, and ends as any program does; only its imports are done before. What
the imports themselves do is asked of processes that start cold.

This file, run with the number of a socket, is that process. On the socket come requests, each with four files: the
input, output and errors of the program, and where to write its process id and then its exit status, a line each.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

_FILES = 4
_HEAD_BYTES = 8  # the length of a request
# Short commands do not load the dashboard; the migrations are loaded by Alembic, each time anew.
_LEFT_OUT = ("keystead.testing", "keystead.web.dashboard", "keystead.store.migrations")


class Warm:
    """The process, started by the first request and ended by ``close``."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def run(
        self, module: str, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], out: IO[bytes],
        err: IO[bytes], seconds: float,
    ) -> int:
        """``python -m MODULE ARGUMENTS`` with an empty input. Gives its exit code (negative: a signal)."""
        pid, told = self.start(module, arguments, cwd=cwd, env=env, out=out.fileno(), err=err.fileno())
        try:
            with selectors.DefaultSelector() as waiting:
                waiting.register(told, selectors.EVENT_READ)
                if not waiting.select(seconds):
                    os.kill(pid, signal.SIGKILL)
                    raise subprocess.TimeoutExpired([module, *arguments], seconds)
            return exit_code(told)
        finally:
            os.close(told)

    def start(
        self, module: str, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], out: int, err: int
    ) -> tuple[int, int]:
        """Begin the same. Gives its process id, and a file that can be read when it ended and has its ``exit_code``.

        A variable that Python itself reads when it starts must not differ from one program to the next.
        """
        request = {"module": module, "arguments": list(arguments), "cwd": os.fspath(cwd), "env": dict(env)}
        told, telling = os.pipe()
        try:
            with Path(os.devnull).open("rb") as nothing:
                self._ask(request, [nothing.fileno(), out, err, telling])
        finally:
            os.close(telling)
        pid = int(_line(told) or 0)
        assert pid, "the process that runs programs is gone; why, it said on standard error"
        return pid, told

    def close(self) -> None:
        if self._process is not None and self._control is not None:
            self._control.close()
            self._process.wait(60)

    def _ask(self, request: dict[str, Any], files: list[int]) -> None:
        raw = json.dumps(request).encode()
        with self._turn:
            if self._control is None:
                self._control = self._start(request["env"])
            socket.send_fds(self._control, [len(raw).to_bytes(_HEAD_BYTES, "big")], files)
            self._control.sendall(raw)

    def _start(self, env: Mapping[str, str]) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], env=env,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
            )
        return ours


WARM = Warm()
atexit.register(WARM.close)


def exit_code(told: int) -> int:
    """How a program ended, waiting for it."""
    return os.waitstatus_to_exitcode(int(_line(told)))


def _line(file: int) -> bytes:
    found = b""
    while not found.endswith(b"\n") and (byte := os.read(file, 1)):
        found += byte
    return found


def _serve(control: socket.socket) -> None:
    """Take requests until there are no more. Returns only in a process that is to run a program, and can do so now."""
    while True:
        head, files, _, _ = socket.recv_fds(control, _HEAD_BYTES, _FILES)
        head = _whole(control, head, _HEAD_BYTES)
        request = json.loads(_whole(control, b"", int.from_bytes(head, "big")))
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if os.fork() == 0:
            control.close()
            return _watch(request, files)
        for file in files:
            os.close(file)


def _watch(request: dict[str, Any], files: list[int]) -> None:
    """Tell who the program is, and how it ended. Returns only in the program."""
    *standing, telling = files
    pid = os.fork()
    if pid:
        for file in standing:
            os.close(file)
        with suppress(BrokenPipeError):  # nobody wants to know any more
            os.write(telling, b"%d\n" % pid)
            os.write(telling, b"%d\n" % os.waitpid(pid, 0)[1])
        os._exit(0)
    os.close(telling)
    for number, file in enumerate(standing):
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv[1:] = [request["module"], *request["arguments"]]
    sys.path.insert(0, str(Path.cwd()))


def _whole(control: socket.socket, begun: bytes, size: int) -> bytes:
    while len(begun) < size:
        piece = control.recv(size - len(begun))
        if not piece:  # whoever asks is gone
            sys.exit()
        begun += piece
    return begun


def _import_all() -> None:
    import keystead

    for module in pkgutil.walk_packages(keystead.__path__, "keystead."):
        if not module.name.startswith(_LEFT_OUT) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    assert threading.active_count() == 1, "a process with threads must not fork"
    gc.collect()
    gc.freeze()  # the collector would write into memory that all share


def _run() -> None:
    """Run the program and leave with its exit code. Memory is left to the system: to free it would be to copy it."""
    code: object = None
    try:
        runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
    except SystemExit as leaving:
        code = leaving.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()  # what was not closed says so
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file; a program has its working directory there
    _import_all()
    _serve(socket.socket(fileno=int(sys.argv.pop())))
    _run()
