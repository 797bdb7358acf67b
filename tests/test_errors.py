"""The tree in the docstring is the tree in the code."""

import re

from keystead import errors


def test_the_docstring_lists_every_error_under_its_branch() -> None:
    documented: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^    ([│ ]*)(?:[├└]── )?([A-Z]\w+)\b", line)
        if not found:
            continue
        depth = (len(found[1]) + (4 if "──" in line else 0)) // 4
        path[depth:] = [found[2]]
        documented[found[2]] = path[depth - 1] if depth else "Exception"
    in_code = {
        name: value.__mro__[1].__name__
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert documented == in_code


def test_errors_carry_what_they_know() -> None:
    assert errors.LimitReached("slow down", retry_after_seconds=1.5).retry_after_seconds == 1.5
    assert errors.GatewayError("busy", transient=True).transient
    corrupt = errors.Corrupt("bad byte", key="k", declaration="d", offset=7)
    assert (corrupt.key, corrupt.declaration, corrupt.offset) == ("k", "d", 7)
