#!lua
-- abandon: forget a link that nobody holds, with its clicks, unless it is being stored.
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
-- ARGV[5]    int     counted     0..1, whether this is counted
-- DERIVES  hash  link        from the code
-- DERIVES  list  clicks      from the code
-- DERIVES  hash  index       from the uid of a click
-- DERIVES  zset  a worker's purgatory   from a name in workers
-- DERIVES  hash  days and their breakdowns   from the day of an instant
-- Returns  {1, fields of the link, clicks}, {0}: no such link, {-1}: it is being stored
-- Cost     O(log(links) + workers + clicks)
-- Repeat: not safe; a repeat finds no link
-- include _links
local code, now, counted = ARGV[3], ARGV[4], ARGV[5] == '1'
local link_key, clicks_key = link_head .. code, clicks_head .. code

local link = call('HGETALL', link_key)
local page, created_at = page_and_time(link)
local clicks = call('LRANGE', clicks_key, 0, -1)
if is_persisting(code) then
  if counted then count(now, 'abandons_attempted', 'abandon_failed', 'already_persisting') end
  return {-1}
end
call('ZREM', buffer, code)
call('ZREM', to_persist, code)
call('DEL', link_key, clicks_key)
for _, raw in ipairs(clicks) do
  local read, click = pcall(cjson.decode, raw)
  if read and type(click) == 'table' and click.uid then call('DEL', index_head .. click.uid) end
end
if not page then
  if counted then count(now, 'abandons_attempted', 'abandon_failed', 'dne') end
  return {0}
end
if counted then count(created_at, 'abandons_attempted', 'abandoned', page .. ':' .. #clicks) end
return {1, link, #clicks}
