local UUID = '^%x+' .. ('%-%x%x%x%x'):rep(3) .. '%-' .. ('%x'):rep(12) .. '$'
local CUT, PARTS = '^(........)(....).(...).(...)(..........).*', '%1-%2-8%3-a%4-%5'
local function keepalive(id)  -- its own name if it is a UUID of this queue, else that of a UUID made from it
  if #id == 36 and id:sub(-2) == ARGV[8] and id:find(UUID) then return ARGV[6]:format(id) end
  return ARGV[6]:format(redis.sha1hex(ARGV[7] .. id):gsub(CUT, PARTS) .. ARGV[8])
end
