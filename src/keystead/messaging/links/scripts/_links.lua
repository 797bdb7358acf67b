-- include keystead.patterns:scripts/daily/_count
-- What the scripts of links share. The first keys are the same in all: earliest, rotation and late of the counts, then
-- buffer, to_persist, its purgatory and workers, and leaked. The first argument packs what derived keys begin with, and
-- from the twelfth on when each of the last days began and its number, newest first; the second names the call.
local packed_names, call = ARGV[1], redis.call
local names = cmsgpack.unpack(packed_names)
local link_head, clicks_head, window_head, index_head, delayed_head, child_head, purgatory_head, day_head, extra_head,
  extra_middle, most_fields = unpack(names, 1, 11)
local buffer, to_persist, purgatory, workers, leaked = KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]

-- Somebody is about to store the link, so that its clicks must not change.
local function is_persisting(code)
  if call('EXISTS', purgatory, leaked, workers) == 0 then return false end
  if call('ZSCORE', purgatory, code) or call('ZSCORE', leaked, code) then return true end
  for _, worker in ipairs(call('SMEMBERS', workers)) do
    if call('ZSCORE', purgatory_head .. worker, code) then return true end
  end
  return false
end

local function day_of(at)
  for place = 12, #names, 2 do
    if at >= names[place] then return names[place + 1] end
  end
  return names[#names]
end

-- Counts one of a plain event and one of an event with a breakdown, on the day of an instant.
local function count(at, plain, event, breakdown)
  local day, key = day_of(tonumber(at)), #KEYS + 1
  KEYS[key] = day_head .. day
  KEYS[key + 1] = extra_head .. day .. extra_middle .. event
  local uid = ARGV[2] .. '.' .. key
  count_all(KEYS[1], KEYS[2], KEYS[3], key, uid, most_fields, {{day, {{plain, 1}}, {{event, {{breakdown, 1}}}}}})
end

-- The fields of a link that scripts look at.
local function page_and_time(link)
  local page, created_at
  for place = 1, #link, 2 do
    if link[place] == 'page_identifier' then page = link[place + 1] end
    if link[place] == 'created_at' then created_at = link[place + 1] end
  end
  return page, created_at
end
