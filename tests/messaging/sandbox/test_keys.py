"""The keys: all of one tag, all named for the sandbox."""

from keystead.keys import Registry
from keystead.messaging.sandbox.keys import SANDBOX


def test_every_key_is_the_sandboxes_and_under_its_tag():
    declarations = list(Registry([SANDBOX]))
    assert len(declarations) > 10
    for declaration in declarations:
        assert declaration.pattern.startswith("sandbox:")
        assert declaration.tag.of({}) == "sandbox"
