"""The only way from the demonstration to the server: HTTP, as any program and any browser would use it."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

API: Final = "/api/1"
USER_HEADER: Final = "x-user-sub"
_PATIENCE_SECONDS: Final = 15.0
_FIRST_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 10.0


class Away(Exception):
    """The server cannot be reached, or says that it cannot answer now."""


class Refusal(Exception):
    """The server understood, and said no. ``status`` and ``type`` are those of its error body."""

    def __init__(self, status: int, type: str, says: str) -> None:
        super().__init__(f"{status} {type}: {says}")
        self.status, self.type = status, type


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and what came with it: JSON where it was JSON."""

    status: int
    body: Any


class Client:
    """Requests with an admin key, or as somebody else. At most ``most_at_once`` are under way."""

    def __init__(self, url: str, key: str, *, most_at_once: int = 16) -> None:
        self.url = url.rstrip("/")
        self._key = key
        self._room = asyncio.Semaphore(most_at_once)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=_PATIENCE_SECONDS), cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def call(
        self, method: str, path: str, body: object = None, *, token: str = "", acts_for: str = "", **query: object
    ) -> Answer:
        """One request of the HTTP interface, with the admin key unless a ``token`` is given.

        ``Refusal`` when the server says no, ``Away`` when it cannot be reached or cannot answer now.
        """
        headers = {"authorization": f"Bearer {token or self._key}"} | ({USER_HEADER: acts_for} if acts_for else {})
        answer = await self._send(method, API + path, headers, body, query)
        if answer.status >= 500:
            raise Away(f"{method} {path}: the server answered {answer.status}")
        if answer.status >= 400:
            told = answer.body if isinstance(answer.body, dict) else {}
            raise Refusal(answer.status, str(told.get("type", "")), str(told.get("message", told.get("detail", ""))))
        return answer

    async def browse(self, path: str, agent: str, *, method: str = "GET", form: Mapping[str, str] | None = None) -> int:
        """Open a page as a browser, or as a program that looks at links; returns the status."""
        headers = {"user-agent": agent, "accept": "text/html"}
        return (await self._send(method, path, headers, None, {}, form=form)).status

    async def text_back(self, number: str, text: str) -> None:
        """A phone answers one of our texts: the sandbox hands it on, as the provider would."""
        headers = {"authorization": f"Bearer {self._key}"}
        await self._send("POST", "/sandbox/reply", headers, {"from": number, "body": text}, {})

    async def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: object, query: Mapping[str, object],
        form: Mapping[str, str] | None = None,
    ) -> Answer:
        assert self._session is not None, "a client is used within `async with`"
        params = {name: str(value) for name, value in query.items() if value not in (None, "")}
        try:
            async with self._room, self._session.request(
                method, self.url + path, headers=headers, params=params, json=body if form is None else None, data=form,
                allow_redirects=False,
            ) as response:
                raw = await response.read()
                is_json = "json" in response.headers.get("content-type", "")
                return Answer(response.status, json.loads(raw) if is_json and raw else None)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise Away(f"{method} {path}: {type(error).__name__}") from error


class Patience:
    """How long to wait for a server that is away: longer each time, and hardly at all once it is back."""

    def __init__(self) -> None:
        self._pause = _FIRST_PAUSE_SECONDS

    async def wait(self) -> None:
        await asyncio.sleep(self._pause)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)

    def over(self) -> None:
        self._pause = _FIRST_PAUSE_SECONDS
