#!lua
-- earliest: the first day that may still be here; a hash of days by value becomes one number.
-- KEYS[1..]  string  earliest  the keys that say it
-- Returns  the day, nil when there is none
-- Cost     O(keys)             Repeat: safe
-- include _first

local first = first_day(1)
return first < 1e9 and first or nil
