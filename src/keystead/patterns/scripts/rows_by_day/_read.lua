-- Rows with their counts, flat.
local function with_counts(rows, head, tail)
  local found = {}
  for _, row in ipairs(rows) do
    found[#found + 1] = row
    found[#found + 1] = redis.call('HGETALL', head .. row .. tail)
  end
  return found
end
