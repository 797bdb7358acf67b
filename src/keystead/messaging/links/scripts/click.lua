#!lua
-- click: find a link of the buffer and write the click down, where it is not one too many, and count it.
-- KEYS[1]    string  earliest    of the counts
-- KEYS[2]    hash    rotation    of the counts
-- KEYS[3]    list    late        of the counts
-- KEYS[4]    zset    buffer      codes by created_at
-- KEYS[5]    zset    to_persist  codes by the time from which they may be stored
-- KEYS[6]    zset    purgatory   codes that the single runner stores
-- KEYS[7]    set     workers     those who store codes, each with a purgatory
-- KEYS[8]    zset    leaked      codes that the sweep stores
-- KEYS[9]    zset    delayed     clicks that came while their link was being stored
-- KEYS[10]   string  flood       clicks of nobody known just now
-- KEYS[11]   string  warning     how often a flood was found
-- KEYS[12..]  hash   days        made from templates, none is given
-- ARGV[1]    bytes   names       see _links
-- ARGV[2]    text    uid         of the click; late counts are numbered under it
-- ARGV[3]    text    code
-- ARGV[4]    text    now         unix seconds
-- ARGV[5]    int     track       0..1, whether the click is written down
-- ARGV[6]    int     flood_most  with so many clicks of nobody known there is a flood; 0: somebody known
-- ARGV[7]    int     limited     0..1, whether only the first click of a while is written down
-- ARGV[8]    text    windows     milliseconds of the windows of a code, of a flood and of a warning
-- ARGV[9]    text    track_type  on_click or post_login
-- ARGV[10]   text    parent      uid of the click before the login, or empty
-- ARGV[11]   bytes   click       what the list of clicks holds
-- ARGV[12]   bytes   fields      MessagePack: what a delayed click holds, each field with its value
-- ARGV[13]   text    due_at      when a delayed click is tried
-- ARGV[14]   text    who         for the breakdown: whether visitor and person are known
-- ARGV[15]   text    page        of a link that is not in the buffer, or empty
-- DERIVES  hash    link, string window, list clicks   from the code
-- DERIVES  hash    index, hash delayed click, string child of   from the uid of a click
-- DERIVES  zset    a worker's purgatory   from a name in workers
-- DERIVES  hash    days and their breakdowns   from the day of an instant
-- Returns  {verdict, fields of the link}: 0 not to be written down, 1 among the clicks of the link, 2 delayed, -1 not in
--          the buffer, -2 the parent has a child, -3 no such parent, -4 say the page first, -5 flood (then 1: tell it),
--          -6 too soon
-- Cost     O(log(clicks) + workers)
-- Repeat: not safe; a repeat is one more click
-- include _links
-- include _parent
local delayed, flood, warning, code, now, track = KEYS[9], KEYS[10], KEYS[11], ARGV[3], ARGV[4], ARGV[5] == '1'
local flood_most, limited, windows, track_type = tonumber(ARGV[6]), ARGV[7] == '1', ARGV[8], ARGV[9]
local uid, parent, click, fields, due_at, who = ARGV[2], ARGV[10], ARGV[11], ARGV[12], ARGV[13], ARGV[14]

local code_ms, flood_ms, warning_ms = string.match(windows, '(%d+) (%d+) (%d+)')
local function seen(window, milliseconds)  -- how often within the window, which begins with the first
  if call('SET', window, '1', 'PX', milliseconds, 'NX') then return 1 end
  return call('INCR', window)
end
if flood_most > 0 and seen(flood, flood_ms) >= flood_most then
  return {-5, seen(warning, warning_ms) == 1 and 1 or 0}
end
local link = call('HGETALL', link_head .. code)
if not track then return {0, link} end
local page, created_at = page_and_time(link)
local function failed(verdict, reason)  -- without a page the database is asked first, and then it is counted
  if page then count(now, 'click_attempts', 'clicks_failed', track_type .. ':' .. page .. ':buffer:' .. reason) end
  return {verdict, link}
end
if limited and seen(window_head .. code, code_ms) > 1 then return failed(-6, 'too_soon') end
local indexed, has_child, waiting = parent_of(parent, code)
if has_child then return failed(-2, 'parent_has_child') end
if parent == '' and not page then return {-1, link} end
if parent ~= '' and not indexed and not waiting then return failed(-3, 'parent_not_found') end
local what = track_type .. ':' .. (page or ARGV[15]) .. ':' .. who
if page and (parent == '' or indexed) and not is_persisting(code) then
  call('RPUSH', clicks_head .. code, click)
  if parent == '' then
    call('HSET', index_head .. uid, 'code', code, 'has_child', '0')
  else
    call('HSET', index_head .. parent, 'has_child', '1')
  end
  count(created_at, 'click_attempts', 'clicks_buffered', what)
  return {1, link}
end
if not page and ARGV[15] == '' then return {-4, link} end
call('ZADD', delayed, due_at, uid)
call('HSET', delayed_head .. uid, unpack(cmsgpack.unpack(fields)))
if parent ~= '' then call('SET', child_head .. parent, uid) end
if indexed then call('HSET', index_head .. parent, 'has_child', '1') end
count(created_at or now, 'click_attempts', 'clicks_delayed', what)
return {2, link}
