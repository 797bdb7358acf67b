#!lua
-- add: add amounts to rows of a day; what comes after the day was rotated is late.
-- KEYS[1]    string  earliest    first day that may still be here
-- KEYS[2]    hash    rotation    rotated_to: the first day that was not rotated yet
-- KEYS[3]    list    late        changes for days that were rotated, oldest first
-- KEYS[4]    set     rows        of the day
-- KEYS[5]    string  unverified  how many rows of the day are not verified
-- KEYS[6..]  hash    counts      of the row that more are counted in, then of each row
-- ARGV[1]    int     day         0..999999
-- ARGV[2]    text    uid         names this call; late changes are numbered under it
-- ARGV[3]    int     most_rows   1..1000000 that are not verified
-- ARGV[4]    text    other       the row that more are counted in
-- ARGV[5]    bytes   amounts     MessagePack: [[row, verified, [[field, amount]...]]...]
-- Returns  {late changes, rows that became other}
-- Cost     O(amounts)            Repeat: not safe; a repeat counts again
local earliest, rotation, late, rows, unverified = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local day, uid, most_rows, other, amounts = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local gone, late_changes, overflow, call = false, 0, 0, redis.call

gone = day < tonumber(call('HGET', rotation, 'rotated_to') or '-1')
if not gone and day < tonumber(call('GET', earliest) or '1e9') then
  call('SET', earliest, day)
end

local function put_late(row, field, amount)
  local entry = {id = uid .. ':' .. late_changes, unix_date = day, row = row, field = field, amount = amount}
  call('RPUSH', late, cjson.encode(entry))
  late_changes = late_changes + 1
end

-- Whether the row is among those of the day, or may join them.
local function counted(row, verified)
  if call('SISMEMBER', rows, row) == 1 then
    return true
  end
  if not verified and row ~= other then
    if tonumber(call('GET', unverified) or '0') >= most_rows then
      return false
    end
    call('INCR', unverified)
  end
  return call('SADD', rows, row) == 1
end

for place, one in ipairs(cmsgpack.unpack(amounts)) do
  local row, hash = one[1], KEYS[6 + place]
  if not gone and not counted(row, one[2]) then
    overflow, hash = overflow + 1, KEYS[6]
    call('SADD', rows, other)
  end
  for _, pair in ipairs(one[3]) do
    if gone then put_late(row, pair[1], pair[2]) else call('HINCRBY', hash, pair[1], pair[2]) end
  end
end
return {late_changes, overflow}
