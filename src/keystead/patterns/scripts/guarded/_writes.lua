-- include keystead.patterns:scripts/daily/_count
-- Remembered writes. Packed they are MessagePack of {kinds, commands, tallies}: the type that each key must have if it
-- is there ('' for any); {place, command, arguments...}; {place, last, uid, most fields, amounts}. A place counts from
-- the first key that belongs to the writes.

-- Unpacks writes, or gives nil for none. A key of a wrong type is an error, here, before anything was written.
local function read_writes(packed, first_key)
  if packed == '' then return nil end
  local writes = cmsgpack.unpack(packed)
  for place, kind in ipairs(writes[1]) do
    local found = kind ~= '' and redis.call('TYPE', KEYS[first_key + place - 1]).ok
    if found and found ~= 'none' and found ~= kind then
      error('WRONGTYPE ' .. KEYS[first_key + place - 1] .. ' must be a ' .. kind .. ', and is a ' .. found)
    end
  end
  for _, tally in ipairs(writes[3]) do
    local first = first_key + tally[1]
    check_counts(KEYS[first + 2], first + 3, first_key + tally[2])
  end
  return writes
end

-- Does what read_writes gave; or packed writes, where nothing else needs to be checked before they are written.
-- Gives what the counts led to: late entries and the amount that became other, for each tally.
-- A value that cannot be added to ends it there; with a table for what went wrong, the others are written all the same.
local function write_all(writes, first_key, wrong)
  if type(writes) == 'string' then writes = read_writes(writes, first_key) end
  local stored = {}
  if not writes then return stored end
  local call = wrong and redis.pcall or redis.call
  for _, command in ipairs(writes[2]) do
    local reply = call(command[2], KEYS[first_key + command[1]], unpack(command, 3))
    if wrong and type(reply) == 'table' and reply.err then wrong[#wrong + 1] = reply.err end
  end
  for _, tally in ipairs(writes[3]) do
    local first = first_key + tally[1]
    local function count()
      return count_all(KEYS[first], KEYS[first + 1], KEYS[first + 2], first + 3, tally[3], tally[4], tally[5])
    end
    local fine, late, overflow = true, 0, 0
    if wrong then fine, late, overflow = pcall(count) else late, overflow = count() end
    if not fine then
      wrong[#wrong + 1] = type(late) == 'table' and late.err or tostring(late)
      late, overflow = 0, 0
    end
    stored[#stored + 1], stored[#stored + 2] = late, overflow
  end
  return stored
end
