"""The process between an owner and its server: ends the server when the owner is gone, however it went.

Run as a plain file by a bare interpreter (``embedded_process`` starts it), so it may import nothing of Keystead.
Arguments: the owner's process id, the seconds a server may take to stop, a directory to remove once the owner died
(or an empty string), the server's configuration file, then its command line, which reads the configuration from
standard input: given by name, a path with a star or question mark would be taken for a search.

Our own standard input is a pipe that only the owner can write to: a byte means stop, its end that the owner is gone.
The first line on standard output is the server's process id; the exit code is the server's.
"""

import contextlib
import os
import select
import signal
import sys
import time
from types import FrameType

_PR_SET_PDEATHSIG = 1
_LOOK_SECONDS = 0.5
_SIGNALS = (signal.SIGCHLD, signal.SIGTERM)


def main(arguments: list[str]) -> int:
    owner, grace_seconds, doomed, config = int(arguments[0]), float(arguments[1]), arguments[2], arguments[3]
    os.umask(0o077)
    wake_reader, wake_writer = os.pipe()
    os.set_blocking(wake_writer, False)
    signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
    for number in _SIGNALS:
        signal.signal(number, _note)
    server = _start(config, arguments[4:])
    with contextlib.suppress(BrokenPipeError):  # the owner is gone already; the loop will see
        os.write(1, b"%d\n" % server)

    # The pipe ends with the owner, but a child the owner forked may still hold it; the parent id tells in that case.
    owner_is_gone = False
    while not _ended(server):
        ready, _, _ = select.select([0, wake_reader], [], [], _LOOK_SECONDS)
        if wake_reader in ready and signal.SIGTERM in os.read(wake_reader, 64):
            break
        if 0 in ready or os.getppid() != owner:
            owner_is_gone = os.getppid() != owner or not os.read(0, 1)
            break
    code = _stop(server, grace_seconds)
    if doomed and owner_is_gone:
        import shutil  # rarely needed, and not small

        shutil.rmtree(doomed, ignore_errors=True)
    return code


def _note(number: int, frame: FrameType | None) -> None:
    """The wakeup pipe carries the signal; the handler only has to exist."""


def _start(config: str, command: list[str]) -> int:
    guard = os.getpid()
    library = None
    if sys.platform == "linux":
        import ctypes

        library = ctypes.CDLL(None)
    # Held back until the child has dropped our handlers: they would swallow an order to stop that comes at once.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    server = os.fork()
    if server:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        return server
    try:
        signal.set_wakeup_fd(-1)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        if library is not None:
            library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != guard:
                os._exit(1)
        os.dup2(os.open(config, os.O_RDONLY), 0)
        os.dup2(2, 1)
        os.execv(command[0], command)  # noqa: S606 - the command line comes from our own process
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


_exit_codes: dict[int, int] = {}


def _ended(server: int) -> bool:
    if server not in _exit_codes:
        pid, status = os.waitpid(server, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            _exit_codes[server] = code if code >= 0 else 128 - code
    return server in _exit_codes


def _stop(server: int, grace_seconds: float) -> int:
    for number, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, 60.0)):
        deadline = time.monotonic() + seconds
        if not _ended(server):
            with contextlib.suppress(ProcessLookupError):
                os.kill(server, number)
        while not _ended(server) and time.monotonic() < deadline:
            time.sleep(0.01)
    return _exit_codes.get(server, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
