from keystead.inventory.documents import read_document


def read(text):
    return {entry.pattern: entry for entry in read_document(text, "x").entries}


def test_cells_parted_by_one_space():
    entry = read(
        "Keys\n\nKey Pattern Type TTL Purpose Set By Read By\n"
        "a:{b} STRING (JSON: {x, y}) 5 min Cached thing. Removed on logout. svc/a.go svc/a.go, svc/b.go (list)\n"
        "words_only HASH none Other thing. scheduler leader scheduler workers\n"
    )
    assert entry["a:{b}"].ttl.value.seconds == 300 and entry["a:{b}"].type.value == "json"
    assert [fact.value for fact in entry["a:{b}"].readers] == ["svc/a.go", "svc/b.go (list)"]
    assert entry["words_only"].writers[0].value == "scheduler leader" and not entry["words_only"].writers[0].sure


def test_cells_parted_by_tabs_bars_and_columns():
    for text in (
        "Key\tType\tTTL\na:{b}\thash\t5 min\n",
        "Key | Type | TTL\na:{b} | hash | 5 min\n",
        "Key      Type   TTL\na:{b}    hash   5 min\n",
    ):
        assert read(f"About our keys.\n\n{text}")["a:{b}"].ttl.value.seconds == 300, text


def test_one_cell_on_each_line():
    entries = read("Our keys\n\nKey\n\nType\n\nTTL\n\na:{b}\n\nhash\n\n5 min\n\nc:{d}\n\nset\n\nnone\n")
    assert set(entries) == {"a:{b}", "c:{d}"} and entries["c:{d}"].type.value == "set"


def test_prose_that_looks_a_little_like_columns_is_left_alone():
    assert read("Key points\n\nType what you want and read on.\nThe value is yours.\n") == {}
