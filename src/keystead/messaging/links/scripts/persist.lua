#!lua
-- persist: let a link wait until it may be stored.
-- KEYS[1]    string  earliest    of the counts
-- KEYS[2]    hash    rotation    of the counts
-- KEYS[3]    list    late        of the counts
-- KEYS[4]    zset    buffer      codes by created_at
-- KEYS[5]    zset    to_persist  codes by the time from which they may be stored
-- KEYS[6]    zset    purgatory   codes that the single runner stores
-- KEYS[7]    set     workers     those who store codes, each with a purgatory
-- KEYS[8]    zset    leaked      codes that the sweep stores
-- KEYS[9..]  hash    days        made from templates, none is given
-- ARGV[1]    bytes   names       see _links
-- ARGV[2]    text    token       names this call; late counts are numbered under it
-- ARGV[3]    text    code
-- ARGV[4]    text    now         unix seconds
-- ARGV[5]    text    due_at      from when it may be stored
-- DERIVES  hash  link        from the code
-- DERIVES  zset  a worker's purgatory   from a name in workers
-- DERIVES  hash  days and their breakdowns   from the day of an instant
-- Returns  1 queued, 0 queued already, -1 being stored, -2 no such link in the buffer
-- Cost     O(log(links) + workers)
-- Repeat: not safe; a repeat is counted as a failed attempt
-- include _links
local code, now, due_at = ARGV[3], ARGV[4], ARGV[5]

local page, created_at = unpack(call('HMGET', link_head .. code, 'page_identifier', 'created_at'))
local found = -2
if call('ZSCORE', to_persist, code) then
  found = 0
elseif is_persisting(code) then
  found = -1
elseif page then
  found = 1
end
if found == 1 then
  call('ZADD', to_persist, due_at, code)
  count(created_at, 'persist_queue_attempts', 'persists_queued', page)
else
  local reason = found == -2 and ':dropped' or ':duplicated'
  count(now, 'persist_queue_attempts', 'persist_queue_failed', (page or 'unknown') .. reason)
end
return found
