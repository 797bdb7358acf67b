#!lua
-- repeat_claim: begin a request that carries an idempotency key, or say what became of the one that began before.
-- KEYS[1]  hash  entry       request, and claim while it runs, answer afterwards
-- ARGV[1]  text  request     what the request is: a hash of it
-- ARGV[2]  text  claim       who runs it
-- ARGV[3]  int   claim_ms    1..600000, how long it may run without a sign of life
-- Returns  {'claimed'}, {'other'}: another request has this key, {'running'}, or {'done', answer}
-- Cost     O(1)             Repeat: safe for whoever holds the claim
local entry, request, claim, claim_ms = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local held = redis.call('HMGET', entry, 'request', 'claim', 'answer')
if held[1] and held[1] ~= request then return {'other'} end
if held[3] then return {'done', held[3]} end
if held[2] and held[2] ~= claim then return {'running'} end

redis.call('HSET', entry, 'request', request, 'claim', claim)
redis.call('PEXPIRE', entry, claim_ms)
return {'claimed'}
