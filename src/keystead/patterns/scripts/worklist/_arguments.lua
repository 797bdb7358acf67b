-- The arguments from a place on; there may be more than Lua can unpack at once.
local function arguments_from(first)
  local found = {}
  for place = first, #ARGV do found[#found + 1] = ARGV[place] end
  return found
end
