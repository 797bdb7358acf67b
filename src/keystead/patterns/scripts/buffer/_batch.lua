-- The identifier of the batch in purgatory, and how often it was handed out. One that has none gets the new one:
-- whatever put the rows there did not name them, so no store knows them yet.
local function handed_out(batch, fresh, now)
  redis.call('HSETNX', batch, 'id', fresh)
  redis.call('HSETNX', batch, 'taken_at', now)
  return redis.call('HGET', batch, 'id'), redis.call('HINCRBY', batch, 'handed_out', 1)
end
