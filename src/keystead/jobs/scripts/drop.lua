#!lua
-- drop: take dead letters away for good.
-- KEYS[1]   list   dead
-- ARGV[1..] bytes  letters   two for each: place where it was seen, and the letter
-- Returns  how many were there
-- Cost     O(dead + letters)    Repeat: safe; a repeat finds none of them
-- include _letters
local dead, places, letters = KEYS[1], {}, {}

for at = 1, #ARGV, 2 do
  places[#places + 1], letters[#letters + 1] = ARGV[at], ARGV[at + 1]
end
local _, count = without(dead, places, letters)
return count
