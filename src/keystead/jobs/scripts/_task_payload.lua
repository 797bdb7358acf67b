-- Tasks are JSON text. They are read with cjson and changed in place: encoding what was decoded would turn an empty
-- list into an object and round long numbers, and a task's arguments must arrive as they were given.
local MOST_ATTEMPTS = 5

local function read_task(raw)
  local readable, task = pcall(cjson.decode, raw)
  return readable and type(task) == 'table' and type(task.type) == 'string' and task or nil
end

local function is_cancelled(raw)
  if not string.find(raw, '"cancelled"%s*:%s*true') then return false end
  local task = read_task(raw)
  return task ~= nil and task.cancelled == true
end

local function closing_quote(raw, place)
  while true do
    place = string.find(raw, '["\\]', place + 1)
    if string.sub(raw, place, place) == '"' then return place end
    place = place + 1
  end
end

-- The text with one field of the object replaced, or added; value is JSON text. Only for text that read_task could read.
local function with_field(raw, name, value)
  local depth, place, from = 0, 0, nil
  while true do
    place = string.find(raw, '[{}%[%]",]', place + 1)
    local letter = string.sub(raw, place, place)
    if letter == '"' then
      local stop = closing_quote(raw, place)
      local after = depth == 1 and string.match(raw, '^%s*:()', stop + 1)
      if after and string.sub(raw, place + 1, stop - 1) == name then from = after end
      place = stop
    elseif letter == '{' or letter == '[' then
      depth = depth + 1
    elseif depth > 1 then
      if letter ~= ',' then depth = depth - 1 end
    elseif from then
      return string.sub(raw, 1, from - 1) .. value .. string.sub(raw, place)
    elseif letter == '}' then
      return string.sub(raw, 1, place - 1) .. ',"' .. name .. '":' .. value .. string.sub(raw, place)
    end
  end
end

-- Count one more try that failed; gives the changed text, and whether that was the last try.
local function failed_once(raw, task, counts, error)
  local attempts = (tonumber(task.attempts) or 0) + counts
  local changed = with_field(with_field(raw, 'attempts', string.format('%d', attempts)), 'last_error', error)
  return changed, attempts >= (tonumber(task.max_attempts) or MOST_ATTEMPTS)
end
