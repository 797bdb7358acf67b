"""A TCP server that greets like a Redis of long ago. Only the greeting is played; nothing is stored."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

GREETING = b"%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n6.2.0\r\n$5\r\nproto\r\n:3\r\n"


class _Greeter(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        while line := self.rfile.readline():
            words = [self._word() for _ in range(int(line[1:]))]
            self.wfile.write(GREETING if words[0].upper() == b"HELLO" else b"+PONG\r\n")

    def _word(self) -> bytes:
        length = int(self.rfile.readline()[1:])
        return self.rfile.read(length + 2)[:-2]


@contextmanager
def old_server() -> Iterator[int]:
    """The loopback port of a server that says it is Redis 6.2."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Greeter) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
