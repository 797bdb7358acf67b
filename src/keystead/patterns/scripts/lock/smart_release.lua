#!lua
-- smart_release: free a smart lock, or let it end soon, if it is still this holder's.
-- KEYS[1]  string  lock            JSON {hostname, acquired_at, lock_id}
-- ARGV[1]  text    lock_id         of the holder
-- ARGV[2]  int     ending_seconds  0..864000, let it live so long at most; 0 frees it now
-- Returns  1 freed or ending, -1 someone else's, -2 malformed, -3 not there
-- Cost     O(1)                    Repeat: safe; a second run finds nothing left to do
local lock, lock_id, ending_seconds = KEYS[1], ARGV[1], tonumber(ARGV[2])

local raw = redis.call('GET', lock)
if not raw then
  return -3
end
local decodes, found = pcall(cjson.decode, raw)
if not decodes or type(found) ~= 'table' or type(found.lock_id) ~= 'string' then
  return -2
end
if found.lock_id ~= lock_id then
  return -1
end
if ending_seconds == 0 then
  redis.call('DEL', lock)
else
  redis.call('EXPIRE', lock, ending_seconds, 'NX')
  redis.call('EXPIRE', lock, ending_seconds, 'LT')
end
return 1
