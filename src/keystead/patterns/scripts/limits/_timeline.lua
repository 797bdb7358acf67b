-- Uses in a row, a gap apart. The key holds when the next may start (mode 0), when the last one started (1), or until
-- when a rate is used up (2), where a use does not wait for its turn.
local function timeline(key, now, gap, lead, most_ahead, mode)
  local held, offset = redis.call('GET', key), mode == '1' and gap or 0
  local start = math.max(now, held and math.floor(held * 1e6 + 0.5) + offset or now)
  local room, busy = most_ahead - (start + lead - now), start + gap - now
  local at = mode == '2' and now or start + lead
  return room >= 0, math.max(0, math.floor(room / gap)), -room / 1e3, busy / 1e3, at, function()
    local text = string.gsub(string.format('%.6f', (start + gap - offset) / 1e6), '%.?0+$', '')
    redis.call('SET', key, text, 'PX', math.ceil(busy / 1e3))
  end
end
