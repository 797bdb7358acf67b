from keystead.inventory.documents import read_document


def read(text):
    return {entry.pattern: entry for entry in read_document(text, "x").entries}


def test_columns_in_any_order_with_cells_of_their_own():
    entries = read(
        "| No. | TTL (min) | Redis key | Owner | Who reads |\n|---|---|---|---|---|\n"
        "| 1 | 5 | `a:{b}` | team x | api, jobs |\n"
    )
    entry = entries["a:{b}"]
    assert entry.ttl.value.seconds == 300 and entry.extra == (("Owner", "team x"),)
    assert [fact.value for fact in entry.readers] == ["api", "jobs"]


def test_several_keys_and_an_example_in_one_cell():
    entries = read("| Key | Type |\n|---|---|\n| `a:{b}`, `c:{d}` (e.g. `a:1`) | hash |\n")
    assert set(entries) == {"a:{b}", "c:{d}"} and entries["a:{b}"].examples == ("a:1",)


def test_a_table_of_properties_of_one_key():
    entries = read(
        "### Pool (`SET`)\n\n```\npool:{tier}:free\n```\n\n| **Type** | SET |\n|---|---|\n| **TTL** | None |\n"
        "| **Purpose** | free pods |\n"
    )
    assert (
        entries["pool:{tier}:free"].type.value == "set" and entries["pool:{tier}:free"].purpose.value == "free pods"
    )


def test_fields_belong_to_the_key_above():
    (entry,) = read(
        "## `a:{b}`\n\nA hash.\n\n| Field | Type | Description |\n|---|---|---|\n| `uid` | string | id |\n"
        "| `at` | int | when |\n"
    ).values()
    assert entry.payload.value == "fields uid, at"


def test_ditto():
    entries = read(
        "| Key | Type | TTL |\n|---|---|---|\n| `a:{b}` | hash | 5 min |\n| `c:{d}` | set | same as above |\n"
    )
    assert entries["c:{d}"].ttl.value.seconds == 300


def test_other_tables_are_no_tables_of_keys():
    assert read("| Command | Meaning |\n|---|---|\n| `SET key value` | sets |\n| `GET user:1` | gets |\n") == {}
    assert read("| Variable | Default |\n|---|---|\n| `REDIS_URL` | `redis://x:6379` |\n") == {}
    assert read("| Endpoint | Auth |\n|---|---|\n| `/users/{id}` | `users:read` |\n") == {}
    assert read("| Key | Default | Meaning |\n|---|---|---|\n| `timeout` | 5 | how long |\n") == {}


def test_a_row_that_cannot_be_read_is_noted():
    inventory = read_document(
        "| Key | Type |\n|---|---|\n| `a:{b}` | hash |\n| all the others, see below | set |\n", "x"
    )
    assert "names no key that can be read" in inventory.notes[0].says and inventory.notes[0].source.line == 4


def test_columns_are_known_by_what_they_hold():
    text = "| Kunci | Tipe | Umur | Ket |\n|---|---|---|---|\n"
    text += "| `a:<b>` | `HASH` | 5 min | what we know of one person and when |\n"
    entry = read(text)["a:{b}"]
    assert entry.type.value == "hash" and entry.ttl.value.seconds == 300 and entry.purpose.value.startswith("what")


def test_cell_that_is_one_name_in_code_is_a_key_however_common_the_word():
    text = "| Key | Type |\n|---|---|\n| `session:{id}` | hash |\n| `config` | string |\n| `cache` | string |\n"
    assert [entry.pattern for entry in read_document(text, "keys.md").entries] == ["session:{id}", "config", "cache"]
