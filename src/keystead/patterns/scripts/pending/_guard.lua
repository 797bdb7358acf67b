-- 1 when the record is as the caller last saw it, 0 when there is none (a broken pair is removed), -1 when it changed.
local function guarded(index, record, member, changes, expected)
  if not whole(index, record, member) then return 0 end
  if changes == '' or expected == '' then return 1 end
  return (redis.call('HGET', record, changes) or '0') == expected and 1 or -1
end
