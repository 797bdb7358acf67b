from keystead.inventory.documents import read_document


def read(text):
    return {entry.pattern: entry for entry in read_document(text, "x").entries}


def fence(body, language=""):
    return f"# Keys\n\n```{language}\n{body}\n```\n"


def test_lines_with_comments_beside_above_and_below():
    entries = read(
        fence("a:{b}   # a hash\n# counts things\nc:{d}\n\ne:{f}\n  ZSET\n  TTL: 24h\n\ng:{h} -> Set (TTL 5 min)")
    )
    assert entries["a:{b}"].type.value == "hash" and entries["c:{d}"].purpose.value == "counts things"
    assert entries["e:{f}"].type.value == "zset" and entries["e:{f}"].ttl.value.seconds == 86400
    assert entries["g:{h}"].type.value == "set" and entries["g:{h}"].ttl.value.seconds == 300


def test_commands_add_to_what_is_described():
    text = "- `a:{b}` things\n\n```redis\nHSET a:1 x y\nEXPIRE a:1 60\nGET other:5\n```\n"
    entries = read(text)
    assert set(entries) == {"a:{b}"}
    assert (
        entries["a:{b}"].type.value == "hash"
        and entries["a:{b}"].ttl.value.seconds == 60
        and entries["a:{b}"].examples == ("a:1",)
    )


def test_commands_alone_make_doubtful_entries():
    (entry,) = read("# Demo\n\n```\nSET user:1000 x EX 30\n```\n").values()
    assert entry.pattern == "user:{id}" and entry.ttl.value.seconds == 30 and "only a command" in entry.uncertain


def test_trees_constants_and_lengths():
    tree = read(fence("app\n├── user:{id}\n│   ├── cart (hash)\n│   └── seen (zset)\n└── jobs (list)"))
    assert set(tree) == {"app:user:{id}:cart", "app:user:{id}:seen", "app:jobs"}
    code = read(
        fence('PREFIX = "app"\nUSER_KEY = "app:user:%s"  # a hash\nURL = "http://x"\nNAME = "plain"', "python")
    )
    assert set(code) == {"app:user:{value}"}
    length = read("```python\nUSER_TTL = 60 * 5\n```\n\n| Key | TTL |\n|---|---|\n| `a:{b}` | `USER_TTL` |\n")
    assert length["a:{b}"].ttl.value.seconds == 300


def test_records_and_other_languages():
    assert set(read(fence("- key: a:{b}\n  type: hash\n- key: c:{d}\n  type: set", "yaml"))) == {"a:{b}", "c:{d}"}
    assert (
        read(fence('{"a:b": 1, "c:{d}": 2}', "json")) == {}
        and read(fence("SELECT a FROM b WHERE c = :id", "sql")) == {}
    )
