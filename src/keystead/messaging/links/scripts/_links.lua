-- include keystead.patterns:scripts/daily/_count
-- What the scripts of links share. The first keys are the same in all: earliest, rotation and late of the counts, then
-- buffer, to_persist, its purgatory and workers, and leaked. The first argument packs the templates of derived keys
-- (what stands before, between and after the variables) and when the last days began, newest first; the second names
-- the call.
local packed_names, call = ARGV[1], redis.call
local names = cmsgpack.unpack(packed_names)
local buffer, to_persist, purgatory, workers, leaked = KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]

local function key_of(template, member)
  return names[template][1] .. member .. names[template][2]
end

-- Somebody is about to store the link, so that its clicks must not change.
local function is_persisting(code)
  if call('ZSCORE', purgatory, code) or call('ZSCORE', leaked, code) then return true end
  for _, worker in ipairs(call('SMEMBERS', workers)) do
    if call('ZSCORE', key_of('purgatory', worker), code) then return true end
  end
  return false
end

local function day_of(at)
  local day
  for _, begun in ipairs(names.days) do
    day = begun[2]
    if at >= begun[1] then break end
  end
  return day
end

-- Counts on the day of an instant: one of a plain event, unless it is nil, and one of an event with a breakdown.
local function count(at, plain, event, breakdown)
  local day, key = day_of(tonumber(at)), #KEYS + 1
  local extra = names.extra
  KEYS[key] = key_of('day', day)
  KEYS[key + 1] = extra[1] .. day .. extra[2] .. event .. extra[3]
  local uid = ARGV[2] .. '.' .. key
  local plains = plain and {{plain, 1}} or {}
  count_all(KEYS[1], KEYS[2], KEYS[3], key, uid, names.most_fields, {{day, plains, {{event, {{breakdown, 1}}}}}})
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
