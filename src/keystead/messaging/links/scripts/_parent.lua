-- Where the click before a login is: among those of the same link in the buffer, or delayed; and whether it has a child.
local function parent_of(parent, code)
  if parent == '' then return false, false, false end
  local index = call('HMGET', index_head .. parent, 'code', 'has_child')
  local indexed = index[1] == code
  local has_child = (indexed and index[2] == '1') or call('EXISTS', child_head .. parent) == 1
  local held = call('HMGET', delayed_head .. parent, 'link_code', 'track_type')
  return indexed, has_child, held[1] == code and held[2] == 'on_click'
end
