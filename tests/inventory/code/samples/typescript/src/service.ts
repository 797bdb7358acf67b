import Redis from 'ioredis';
import { createClient } from 'redis';
import { codeKey, HOUR, KEYS, Prefix } from './keys';

const client = createClient({ url: 'redis://localhost:6379' });

export class Sessions {
  private static readonly PREFIX = 'sess:';

  constructor(private readonly redis: Redis, private readonly ttl = 15 * 60) {}

  private key(id: string): string {
    return Sessions.PREFIX + id;
  }

  async open(id: string, user: object): Promise<void> {
    await this.redis.set(this.key(id), JSON.stringify(user), 'EX', 30 * 60);
    await this.redis
      .multi()
      .sadd(`${Prefix.Token}s`, id)
      .zadd(KEYS.ranking, Date.now(), id)
      .exec();
  }

  async close(id: string) {
    await this.redis.del(this.key(id), `${Prefix.Token}:${id}`);
  }

  async users(ids: string[]) {
    return this.redis.mget(...ids.map((id) => KEYS.user(id)));
  }

  async push(userId: string, item: string) {
    await this.redis.lpush(KEYS.feed(userId), item);
    await this.redis.ltrim(KEYS.feed(userId), 0, 99);
    await this.redis.expire(KEYS.feed(userId), HOUR * 2);
  }
}

export async function code(email: string) {
  await client.set(codeKey(email), '1', { EX: 300, NX: true });
  await client.hSet('settings', 'a', 'b');
  await client.setEx(`once:${email}`, 3600, '1');
  await client.publish('mail', email);
  const day = new Date().toISOString().slice(0, 10);
  await client.incr(`mails:${day}`);
  for await (const key of client.scanIterator({ MATCH: 'once:*' })) {
    console.log(`found: ${key}`);
  }
  return fetch(`https://example.org/a:${email}`);
}

export const styles = { base: 'hover:underline', time: '10:30' };
