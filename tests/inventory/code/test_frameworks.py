"""Spring, Redisson, caches and locks."""

from pathlib import Path

from .reading_code import facts, read


def test_spring_operations(tmp_path: Path) -> None:
    found = read(tmp_path, a_java="""
        @RedisHash(value = "people", timeToLive = 60)
        class A {
            @Autowired private RedisTemplate<String, String> redisTemplate;
            @Resource private HashOperations<String, String, String> hashes;
            void f(String id) {
                redisTemplate.opsForList().leftPush("l:" + id, "x");
                redisTemplate.boundValueOps("v:" + id).set("x");
                hashes.put("h:" + id, "f", "v");
                redisTemplate.delete(Arrays.asList("d:" + id));
            }
        }
        """)

    assert [facts(entry)[:2] for entry in found.entries] == [
        ("people", "set"), ("people:{id}", "hash"), ("l:{id}", "list"), ("v:{id}", "string"), ("h:{id}", "hash"),
        ("d:{id}", "")]


def test_locks(tmp_path: Path) -> None:
    found = read(tmp_path, a_ts="""
        import Redlock from 'redlock';
        await redlock.acquire([`locks:${id}`], 5000);
        """, b_go="""
        package a
        import "github.com/go-redsync/redsync/v4"
        func f(id string) { rs.NewMutex("mutex:" + id) }
        """)

    assert [facts(entry) for entry in found.entries] == [
        ("locks:{id}", "lock", "exactly", 5.0), ("mutex:{id}", "lock", "", None)]


def test_a_cache_that_is_not_known_to_be_one_is_left_alone(tmp_path: Path) -> None:
    assert not read(tmp_path, a_py="cache = {}\ncache.set('a:b', 1)", b_rb="cache.fetch('a:b') { 1 }").entries
