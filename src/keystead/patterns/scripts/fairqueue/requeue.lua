#!lua
-- requeue: hand leased items back: to ready, delayed, or to the dead.
-- KEYS[1]  list    ring        shards with something to serve
-- KEYS[2]  hash    deficit     credit of each shard in the ring, debt of others
-- KEYS[3]  zset    sleep       other shards by when to look at them
-- KEYS[4]  hash    stat        counts
-- KEYS[5]  list    bell        wakes idle consumers
-- KEYS[6]  hash    conf        settings made at run time
-- KEYS[7..] string keepalive   of each item in turn
-- ARGV[1]  int     now_ms
-- ARGV[2]  text    ready       template
-- ARGV[3]  text    delayed     template
-- ARGV[4]  text    leased      template
-- ARGV[5]  text    items       template
-- ARGV[6]  text    dead        template
-- ARGV[7]  int     delay_ms    -1..31622400000; 0 ready at once, -1 dead at once
-- ARGV[8]  int     tries       0..1, what this delivery counts as an attempt
-- ARGV[9]  int     attempts    most attempts, where conf has no number
-- ARGV[10..] text  of_each     shard, id, token of each item in turn
-- DERIVES  zset    ready, delayed, leased, dead; hash items: filled with a shard
-- Returns  array of words, one for each item: ready, delayed, dead, or stale
-- Cost     O(k log m)   Repeat: not safe; a repeat answers stale for what it moved
local conf, dead_of, delay_ms, tries, answers = KEYS[6], ARGV[6], tonumber(ARGV[7]), ARGV[8], {}
-- include _rest
-- include _place
-- include _ready
-- include _bury
local most_attempts = tonumber(call('HGET', conf, 'max_attempts') or ARGV[9])
for i = 10, #ARGV, 3 do
  local at, shard, id, token, answer = 7 + (i - 10) / 3, ARGV[i], ARGV[i + 1], ARGV[i + 2], 'stale'
  local keepalive = KEYS[at]
  if call('GET', keepalive) == token and call('ZREM', leased_of:format(shard), id) == 1 then
    call('DEL', keepalive)
    call('HINCRBY', stat, 'leased', -1)
    local attempts = tries == '1' and call('HINCRBY', items_of:format(shard), id .. '#a', 1) or 0
    if attempts > most_attempts or delay_ms < 0 then
      bury(shard, id)
      answer = 'dead'
    elseif delay_ms > 0 then
      call('ZADD', delayed_of:format(shard), now + delay_ms, id)
      call('HINCRBY', stat, 'delayed', 1)
      answer = 'delayed'
    else
      make_ready(shard, id)
      answer = 'ready'
    end
    place(shard)
  end
  answers[#answers + 1] = answer
end
return answers
