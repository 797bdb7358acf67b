"""Names of one layout in another."""

import contextlib
import random

import pytest

from keystead.app import App
from keystead.custody.renaming import renaming
from keystead.errors import DeclarationError
from keystead.keys import Layout, Registry
from keystead.settings import Settings


def names(registry: Registry) -> set[bytes]:
    """Keys of every declaration that have a place in both layouts."""
    rng = random.Random(3)
    made = set()
    for declaration in registry:
        for _ in range(3 if declaration.kind == "key" else 0):
            with contextlib.suppress(DeclarationError):  # an id of no queue, which no program makes
                reference = declaration.reference(declaration.sample(rng))
                reference.name(Layout.TAGGED)
                made.add(reference.name(registry.layout))
    return made


@pytest.mark.parametrize("to_tagged", [True, False])
def test_every_declared_key_finds_its_name_in_the_other_layout(to_tagged: bool) -> None:
    app = App(Settings())
    plain, tagged = app.registry(Layout.PLAIN), app.registry(Layout.TAGGED)
    before, after = (plain, tagged) if to_tagged else (tagged, plain)
    rename = renaming(before, after.layout)
    seen = 0
    for raw_key in names(before):
        name, match = rename(raw_key), before.resolve(raw_key)
        assert name is not None and match is not None, raw_key
        again = after.resolve(name)
        assert again is not None and again.declaration.pattern == match.declaration.pattern
        assert again.arguments == match.arguments
        seen += 1
    assert seen > 100
    assert rename(b"nobody:declared:this:key") is None and rename(b"\xff") is None
