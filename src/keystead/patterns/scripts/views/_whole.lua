-- Refuse what is no whole number before anything is written.
local function check_whole(...)
  for _, amount in ipairs({...}) do
    if amount and not string.match(amount, '^-?%d+$') then
      error('a count of views is not a whole number', 0)
    end
  end
end
