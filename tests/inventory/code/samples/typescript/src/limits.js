const { createClient } = require('redis');

const redis = createClient();
const LIMIT_MS = 5 * 60 * 1000;

async function allow(ip, route) {
  const key = ['limit', route, ip].join(':');
  const count = await redis.incr(key);
  if (count === 1) await redis.pExpire(key, LIMIT_MS);
  await redis.eval(
    `redis.call('SET', KEYS[1], ARGV[1]) return redis.call('LPUSH', 'log:' .. ARGV[1], 1)`,
    { keys: ['last:' + ip], arguments: [route] },
  );
  return count < 10;
}

module.exports = { allow };
