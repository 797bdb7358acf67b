"""Following an expression to what it says."""

from pathlib import Path

import pytest

from .reading_code import facts, forms, patterns, read


@pytest.mark.parametrize(("text", "pattern"), [
    ('key = f"user:{user.id}"', "user:{user_id}"),
    ('key = "user:%s:%d" % (name, count)', "user:{name}:{count}"),
    ('key = "user:%(who)s" % {"who": x}', "user:{x}"),
    ('key = "user:{}:{0}".format(a)', "user:{a}:{a2}"),
    ('key = "user:{uid}".format(uid=account.pk)', "user:{account_pk}"),
    ('key = "user:" + str(order_id) + ":x"', "user:{order_id}:x"),
    ('key = ":".join(("a", b, "c"))', "a:{b}:c"),
    ('P = "a"\nQ = P + ":b"\nkey = f"{Q}:{c}"', "a:b:{c}"),
    ('key = "a:{id}".replace("{id}", user_id)', "a:{user_id}"),
    ('key = b"a:b".decode()', "a:b"),
    ('key = f"h:{hashlib.sha256(token.encode()).hexdigest()}"', "h:{token_sha256}"),
    ('key = f"d:{now.strftime(fmt)}"', "d:{date}"),
    ('key = "a"\nkey += ":b"', "a:b"),
    ('NAMES = {"x": "one:two"}\nkey = NAMES["x"]', "one:two"),
    ('key = os.getenv("PREFIX", "app") + ":x"', "app:x"),
])
def test_python(text: str, pattern: str) -> None:
    assert forms(text, "key") == [pattern]


def test_every_branch_is_a_form() -> None:
    assert forms('if x:\n    key = "a:1"\nelse:\n    key = f"b:{c}"\nprint(key)', "key") == ["a:1", "b:{c}"]
    assert forms('key = "a:x" if y else "b:x"', "key") == ["a:x", "b:x"]


def test_knots_end() -> None:
    assert forms("a = b\nb = a\nkey = a + ':x'", "key")
    assert forms("def f(x):\n    return f(x) + ':y'\nkey = f('a')", "key")


def test_a_prefix_comes_from_whoever_makes_the_object(tmp_path: Path) -> None:
    found = read(tmp_path, a_py="""
        import redis
        class Store:
            def __init__(self, r: redis.Redis, prefix="plain"):
                self.r, self.prefix = r, prefix
            def put(self, name):
                self.r.set(self.prefix + ":" + name, 1)
        class Named(Store):
            kind = "named"
            def key(self): return f"{self.kind}:x"
            def touch(self): self.r.incr(self.key())
        class Other(Named):
            kind = "other"
        def run(r):
            Store(r, "first").put("a")
            Store(r, prefix="second")
        """)

    assert set(patterns(found)) == {"first:{name}", "second:{name}", "named:x", "other:x"}


def test_a_default_begins_a_key_but_does_not_stand_in_its_middle(tmp_path: Path) -> None:
    found = read(tmp_path, a_py="""
        import redis
        r = redis.Redis()
        def push(item, queue="default", prefix="jobs"):
            r.rpush(f"{prefix}:{queue}", item)
        """)

    assert patterns(found) == ["jobs:{queue}"]


def test_any_number_of_parts(tmp_path: Path) -> None:
    found = read(tmp_path, a_py="""
        import redis
        r = redis.Redis()
        def make_key(*parts): return ":".join(["app", *parts])
        r.get(make_key("user", user_id))
        def drop(*keys): r.delete(*keys)
        drop("one:1", "two:2")
        """, b_ts="""
        import Redis from 'ioredis';
        export class CacheService {
          constructor(private readonly redis: Redis) {}
          private build(base: string, ...parts: string[]) { return [base, ...parts].join(':'); }
          async load(id: string) { return this.redis.get(this.build('ts', 'user', id)); }
          async remove(...keys: string[]) { await this.redis.del(...keys); }
        }
        class Orders {
          constructor(private readonly cache: CacheService) {}
          drop(id: string) { return this.cache.remove(`order:${id}`, 'orders'); }
        }
        """)

    assert set(patterns(found)) == {"app:user:{user_id}", "one:1", "two:2", "ts:user:{id}", "order:{id}", "orders"}


def test_an_enum_of_java_with_fields_and_no_constructor(tmp_path: Path) -> None:
    found = read(tmp_path, a_java="""
        @Getter @RequiredArgsConstructor
        enum RedisPrefix {
            TOKEN("token:", 1000 * 60L), CODE("code:", 5000L);
            private final String prefix;
            private final Long millis;
        }
        class Unit { static final long TTL = 7L; static final TimeUnit UNIT = TimeUnit.DAYS; }
        class Store {
            private StringRedisTemplate redisTemplate;
            void put(String id) {
                redisTemplate.opsForValue().set(RedisPrefix.TOKEN.getPrefix() + id, "x",
                    RedisPrefix.TOKEN.getMillis(), TimeUnit.MILLISECONDS);
                redisTemplate.opsForValue().set("week:" + id, "x", Unit.TTL, Unit.UNIT);
            }
        }
        """)

    assert [facts(entry) for entry in found.entries] == [
        ("token:{id}", "string", "exactly", 60.0), ("week:{id}", "string", "exactly", 604800.0)]


def test_a_method_of_ruby_is_called_by_its_bare_name(tmp_path: Path) -> None:
    found = read(tmp_path, cart_rb="""
        class Cart
          def key
            "cart:#{@id}"
          end

          def add(product)
            REDIS.with do |redis|
              redis.hincrby(key, product, 1)
              redis.expire(key, 60)
            end
            redis.setex("#{key}:draft", 30, 1)
            redis.set("other:#{@id}:x", 1)
          end
        end
    """)
    assert [facts(entry) for entry in found.entries] == [
        ("cart:{id}", "hash", "exactly", 60.0), ("cart:{id}:draft", "string", "exactly", 30.0),
        ("other:{id}:x", "string", "none", None)]
    assert not found.notes
