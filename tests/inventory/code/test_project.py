"""Which definition a name in another file means."""

from pathlib import Path

from .reading_code import patterns, read


def test_the_imported_one_of_two(tmp_path: Path) -> None:
    found = read(tmp_path, one__keys_py='NAME = "one"\n', two__keys_py='NAME = "two"\n',
                 three__keys_py='NAME = "three"\n',
                 four__keys_py='NAME = "four"\n',
                 a_py='import redis\nfrom two.keys import NAME\nredis.Redis().get(f"{NAME}:x")\n')

    assert patterns(found) == ["two:x"]


def test_a_module_and_a_folder_of_go(tmp_path: Path) -> None:
    found = read(tmp_path,
                 keys__names_go='package keys\n\nconst UserPrefix = "user:"\n'
                                'func Cart(id string) string { return "cart:" + id }\n',
                 store__local_go='package store\n\nconst localPrefix = "local:"\n',
                 store__store_go='package store\n\nimport (\n"x/keys"\n"github.com/redis/go-redis/v9"\n)\n'
                                 'func f(rdb *redis.Client) {\n rdb.Get(ctx, keys.UserPrefix+id)\n'
                                 ' rdb.Get(ctx, localPrefix+id)\n rdb.Get(ctx, keys.Cart(id))\n}\n')

    assert patterns(found) == ["user:{id}", "local:{id}", "cart:{id}"]
