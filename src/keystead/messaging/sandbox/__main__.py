"""``python -m keystead.messaging.sandbox``: the sandbox as a process of its own, for load and for being killed."""

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Callable

from keystead.clock import SystemClock
from keystead.engine import connect
from keystead.messaging.sandbox.sandbox import Sandbox
from keystead.messaging.sandbox.serving import listening, serving, url_of
from keystead.messaging.sandbox.twilio import Account
from keystead.settings import SmsSettings


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m keystead.messaging.sandbox", description=__doc__)
    parser.add_argument("--valkey-url", required=True, help="the server that keeps what the sandbox accepts")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 for a free one")
    parser.add_argument("--account-sid", default=SmsSettings().account_sid, help="Twilio account")
    parser.add_argument("--auth-token", default=SmsSettings().auth_token, help="Twilio auth token")
    parser.add_argument("--inbound-url", default="", help="where incoming texts are told")
    parser.add_argument("--events-url", default="", help="where it is told what becomes of email")
    parser.add_argument("--keep-messages", type=int, default=10_000, help="messages that are kept at most")
    parser.add_argument("--key-bits", type=int, default=2048, help="length of the signing key; 1024 signs faster")
    return parser.parse_args(given)


async def serve(options: argparse.Namespace) -> None:
    """Serve until a signal says to stop. Prints the address when it can be reached."""
    made = listening(options.host, options.port)
    valkey = await connect(options.valkey_url)
    try:
        sandbox = Sandbox(
            valkey, SystemClock(), url=url_of(made), account=Account(options.account_sid, options.auth_token),
            inbound_url=options.inbound_url, events_url=options.events_url, keep_messages=options.keep_messages,
            key_bits=options.key_bits,
        )
        await sandbox.faults.refresh()
        stop = asyncio.Event()
        for each in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(each, stop.set)
        async with serving(sandbox, made):
            sys.stdout.write(url_of(made) + "\n")
            sys.stdout.flush()
            await stop.wait()
    finally:
        await valkey.aclose()


def main(given: list[str] | None = None) -> None:
    logging.getLogger("uvicorn.error").disabled = True  # it complains of every connection that we cut on purpose
    options = arguments(given)
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with contextlib.suppress(ImportError):
        from uvloop import new_event_loop as loop_factory
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(serve(options))


if __name__ == "__main__":
    main()
