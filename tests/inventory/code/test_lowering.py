"""The readers of the languages: spellings that only one of them has."""

from pathlib import Path

import pytest

from .reading_code import forms, patterns, read


@pytest.mark.parametrize(("language", "text", "name", "expected"), [
    ("typescript", "const P = 'a';\nconst key = `${P}:${user.id}:${n ?? 1}`;", "key", ["a:{user_id}:1"]),
    ("typescript", "enum E { A = 'x' }\nconst key = E.A + ':y';", "key", ["x:y"]),
    ("typescript", "const K = { u: (id: string) => `u:${id}` };\nconst key = K.u(userId);", "key", ["u:{id}"]),
    ("typescript", "class A { static readonly B = 'b'; }\nconst key = [A.B, x].join(':');", "key", ["b:{x}"]),
    ("tsx", "const key = 'a:'.concat(b);", "key", ["a:{b}"]),
    ("go", 'package a\nconst f = "u:%d"\nvar key = fmt.Sprintf(f, id)', "key", ["u:{id}"]),
    ("go", 'package a\nvar key = strings.Join([]string{"a", b}, ":")', "key", ["a:{b}"]),
    ("go", 'package a\nvar key = "a:" + strconv.Itoa(userID)', "key", ["a:{user_id}"]),
    ("java", 'class A { static final String P = "p:"; static final String key = P + Long.valueOf(id); }', "P", ["p:"]),
    ("ruby", 'P = "a"\nkey = "#{P}:#{user.id}"', "key", ["a:{user_id}"]),
    ("ruby", 'key = "u:%s:%s" % [a, b]', "key", ["u:{a}:{b}"]),
    ("ruby", 'key = format("u:%{id}", id: user_id)', "key", ["u:{user_id}"]),
])
def test_spellings(language: str, text: str, name: str, expected: list[str]) -> None:
    assert forms(text, name, language) == expected


def test_java_joins_formats_and_builders(tmp_path: Path) -> None:
    found = read(tmp_path, A_java="""
        import redis.clients.jedis.Jedis;
        class A {
            void run(Jedis jedis, Long id, String name) {
                jedis.get(String.format("one:%s:%d", name, id));
                jedis.get("two:" + id);
                jedis.get("three:%s".formatted(name));
                jedis.get(new StringBuilder("four:").append(id).append(":x").toString());
                jedis.get(MessageFormat.format("five:{0}", name));
            }
        }
        """)

    assert patterns(found) == ["one:{name}:{id}", "two:{id}", "three:{name}", "four:{id}:x", "five:{name}"]
    assert found.entries[1].variables == (("id", "integer"),)


def test_a_call_in_a_chain_stands_on_its_own_line(tmp_path: Path) -> None:
    found = read(tmp_path, a_ts="""
        import Redis from 'ioredis';
        const redis = new Redis();
        redis.multi()
          .set('a:1', 'x')
          .expire('a:1', 5)
          .sadd('b:1', 'y');
        """)

    assert [(entry.pattern, entry.sources[0].line) for entry in found.entries] == [("a:1", 5), ("b:1", 7)]


def test_a_block_of_ruby_is_given_the_client(tmp_path: Path) -> None:
    found = read(tmp_path, a_rb="""
        REDIS.with do |conn|
          conn.multi { |m| m.set("a:#{id}", 1); m.expire("a:#{id}", 2.days) }
        end
        """)

    assert patterns(found) == ["a:{id}"]
    assert found.entries[0].ttl is not None and found.entries[0].ttl.value.seconds == 172800
