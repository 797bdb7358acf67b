#!lua
-- store: add counts to days of one family, with their breakdowns; what comes after a day was rotated is late.
-- KEYS[1]    string  earliest     first day that may still be here
-- KEYS[2]    hash    rotation     rotated_to: the first day that was not rotated yet
-- KEYS[3]    list    late         counts for days that were rotated, oldest first
-- KEYS[4..]  hash    days         for each day: its counts, then the breakdown of each event that has one
-- ARGV[1]    text    uid          names this call; late entries are numbered under it
-- ARGV[2]    int     most_fields  1..1000000, what a breakdown may hold; more is counted as other
-- ARGV[3]    bytes   amounts      MessagePack: [[day, [[event, amount]...], [[event, [[value, amount]...]]...]]...]
-- Returns  {late entries, amount that went to other}
-- Cost     O(amounts)             Repeat: not safe; a repeat counts again
-- include _count
local earliest, rotation, late, uid, most_fields, amounts = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3]

check_counts(late, 4, #KEYS)
return {count_all(earliest, rotation, late, 4, uid, tonumber(most_fields), cmsgpack.unpack(amounts))}
