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
local other_place = 6
-- include _add

check()
return add()
