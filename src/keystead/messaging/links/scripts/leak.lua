#!lua
-- leak: put a link aside that nobody stored or gave up in time, unless it is being stored.
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
-- ARGV[4]    number  limit       links made after this instant are left alone
-- DERIVES  hash  link, list clicks   from the code
-- DERIVES  zset  a worker's purgatory   from a name in workers
-- Returns  1 put aside, 0 left alone, -1 there was nothing behind the code, which is gone now
-- Cost     O(log(links) + workers)
-- Repeat: safe; it stays aside
-- include _links
local code, limit = ARGV[3], tonumber(ARGV[4])

local created_at = call('ZSCORE', buffer, code)
if created_at and call('ZSCORE', leaked, code) then return 1 end
if not created_at or tonumber(created_at) > limit or is_persisting(code) then return 0 end
call('ZREM', to_persist, code)
if call('EXISTS', link_head .. code) == 0 then
  call('ZREM', buffer, code)
  call('DEL', clicks_head .. code)
  return -1
end
call('ZADD', leaked, created_at, code)
return 1
