package shop;

import static shop.Constants.TOKEN;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RedissonClient;
import org.springframework.cache.annotation.Cacheable;
import org.springframework.cache.annotation.CacheEvict;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.ValueOperations;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.params.SetParams;

public class Service {
    private static final String LOCK = "lock:order:";
    private final StringRedisTemplate template;
    private final RedissonClient redisson;
    private final JedisPool pool;
    private final ValueOperations<String, String> values;

    public Service(StringRedisTemplate template, RedissonClient redisson, JedisPool pool) {
        this.template = template;
        this.redisson = redisson;
        this.pool = pool;
        this.values = template.opsForValue();
    }

    public void login(Long userId, String token) {
        template.opsForValue().set(TOKEN + token, userId.toString(), Constants.TOKEN_SECONDS, TimeUnit.SECONDS);
        template.opsForHash().put(RedisKeys.USER.of(userId), "seen", "now");
        template.expire(RedisKeys.USER.of(userId), Duration.ofDays(7));
        values.set("greeting:" + userId, "hello", Duration.ofMinutes(5));
        template.convertAndSend("logins", token);
    }

    public void add(Long userId, String item) {
        template.opsForZSet().add(RedisKeys.CART.of(userId), item, 1.0);
        template.opsForValue().increment("count:" + item);
    }

    public void once(String id) {
        try (Jedis jedis = pool.getResource()) {
            jedis.set(LOCK + id, "1", SetParams.setParams().nx().ex(30));
            jedis.setex(String.format("mail:%s:%d", id, 3), 120, "x");
            jedis.sadd(String.join(":", "tags", id), "a");
        }
    }

    public void guarded(String id) {
        redisson.getLock("guard:" + id).lock();
    }

    @Cacheable(value = "users", key = "#id")
    public String user(Long id) {
        return "x";
    }

    @CacheEvict(cacheNames = {"users"}, key = "'all:' + #region.id")
    public void forget(Region region) {
    }
}
