"""Uses through wrappers."""

from pathlib import Path

from .reading_code import facts, patterns, read


def test_a_wrapper_of_a_wrapper_with_its_expiry(tmp_path: Path) -> None:
    found = read(tmp_path, a_ts="""
        import Redis from 'ioredis';
        export class CacheService {
          constructor(private redis: Redis) {}
          async put(key: string, value: string, ttl: number) { await this.redis.set(key, value, 'EX', ttl); }
          async remember(key: string, value: string) { await this.put(`cache:${key}`, value, 60); }
        }
        export class Users {
          constructor(private cacheService: CacheService) {}
          save(id: string) { return this.cacheService.put(`user:${id}`, 'x', 60 * 5); }
          page(n: number) { return this.cacheService.remember(`page:${n}`, 'x'); }
        }
        """)

    assert sorted(facts(entry) for entry in found.entries) == [
        ("cache:page:{n}", "string", "exactly", 60.0), ("user:{id}", "string", "exactly", 300.0)]
    assert [fact.value for fact in found.entries[0].writers + found.entries[1].writers] == ["Users.save", "Users.page"]


def test_a_common_method_of_another_class_is_not_taken_for_the_wrapper(tmp_path: Path) -> None:
    found = read(tmp_path, a_py="""
        import redis
        class Store:
            def __init__(self, r: redis.Redis): self.r = r
            def get(self, key): return self.r.get(key)
        def f(store: Store, other, d):
            store.get("real:1")
            other.get("false:1")
            d.get("false:2")
        """)

    assert patterns(found) == ["real:1"]
