"""Time that a test moves by hand, and the remaining TTLs of the test server with it."""

import time
from collections.abc import Iterable
from typing import Any, Protocol

# Names are collected before anything changes, since a walk over a changing set may meet a key twice.
_SHORTEN = """#!lua flags=allow-cross-slot-keys
local shift = tonumber(ARGV[1])

local function shorten_fields(key)
  local fields = redis.call('HKEYS', key)
  for first = 1, #fields, 1000 do
    local some = {unpack(fields, first, math.min(first + 999, #fields))}
    local left = redis.call('HPTTL', key, 'FIELDS', #some, unpack(some))
    local due = redis.call('HPEXPIRETIME', key, 'FIELDS', #some, unpack(some))
    for i, field in ipairs(some) do
      if left[i] >= 0 and left[i] <= shift then
        redis.call('HDEL', key, field)
      elseif left[i] > 0 then
        redis.call('HPEXPIREAT', key, string.format('%.0f', due[i] - shift), 'FIELDS', 1, field)
      end
    end
  end
end

for db, expires, rest in string.gmatch(redis.call('INFO', 'keyspace'), 'db(%d+):keys=%d+,expires=(%d+)([^\\r\\n]*)') do
  redis.call('SELECT', db)
  local with_fields = (tonumber(string.match(rest, 'keys_with_volatile_items=(%d+)')) or 0) > 0
  local keys, cursor = {}, '0'
  if tonumber(expires) > 0 or with_fields then
    repeat
      local page = redis.call('SCAN', cursor, 'COUNT', 1000)
      cursor = page[1]
      for _, key in ipairs(page[2]) do keys[key] = true end
    until cursor == '0'
  end
  for key in pairs(keys) do
    local left = redis.call('PTTL', key)
    if left >= 0 and left <= shift then
      redis.call('DEL', key)
    elseif left > 0 then
      redis.call('PEXPIREAT', key, string.format('%.0f', redis.call('PEXPIRETIME', key) - shift))
    end
    if with_fields and redis.call('TYPE', key).ok == 'hash' then shorten_fields(key) end
  end
end
"""


class Server(Protocol):
    """A server that takes one command at a time: ``LocalServer``, or a node of ``LocalCluster``."""

    def call(self, *command: str | bytes | int) -> Any: ...


class MovableClock:
    """A ``Clock`` that stands still until it is moved.

    ``advance`` also brings every expiry on the given servers nearer by the same time, of hash fields too; keys whose
    time is then over are deleted. So for the program under test the whole world moved. Three things do not move: the
    server's own TIME, the timeout of a blocked command, and how long a stream entry has been pending. An expiry that
    the program sets as an instant of this clock, after a move, lies that move too far in the server's future: write
    expiries as durations.
    """

    def __init__(self, servers: Iterable[Server] = (), *, now: float | None = None) -> None:
        self._servers = list(servers)
        self._now = time.time() if now is None else now

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass. One atomic step on each server."""
        if seconds < 0:
            raise ValueError("a clock can be advanced, not put back: what has expired is gone")
        self._now += seconds
        for server in self._servers:
            server.call("EVAL", _SHORTEN, 0, round(seconds * 1000))

    def add(self, *servers: Server) -> None:
        """Move the expiries of these servers too, for example the primaries of a cluster."""
        self._servers.extend(servers)
