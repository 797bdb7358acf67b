#!lua
-- add_once: add amounts to rows of a day, unless a mark says that it was done; what comes after the rotation is late.
-- KEYS[1]    string  done        mark: these amounts were added
-- KEYS[2]    string  earliest    first day that may still be here
-- KEYS[3]    hash    rotation    rotated_to: the first day that was not rotated yet
-- KEYS[4]    list    late        changes for days that were rotated, oldest first
-- KEYS[5]    set     rows        of the day
-- KEYS[6]    string  unverified  how many rows of the day are not verified
-- KEYS[7..]  hash    counts      of the row that more are counted in, then of each row
-- ARGV[1]    int     day         0..999999
-- ARGV[2]    text    uid         names this call; late changes are numbered under it
-- ARGV[3]    int     most_rows   1..1000000 that are not verified
-- ARGV[4]    text    other       the row that more are counted in
-- ARGV[5]    bytes   amounts     MessagePack: [[row, verified, [[field, amount]...]]...]
-- ARGV[6]    int     held_ms     1..10000000000, how long the mark holds
-- Returns  {late changes, rows that became other}; nil when it was done before
-- Cost     O(amounts)            Repeat: safe; the mark says so
local done, earliest, rotation, late, rows, unverified = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local day, uid, most_rows, other, amounts = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local held_ms, other_place = ARGV[6], 7
-- include _add

if call('EXISTS', done) == 1 then
  return nil
end
check()
call('SET', done, '1', 'PX', held_ms)
return add()
