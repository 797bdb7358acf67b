"""The shape of rooms and modules: fronts, names, sizes, and a test module for each."""

import ast

import pytest

from .source import SOURCE, TESTS, modules

FORBIDDEN_NAMES = {"utils", "helpers", "common", "core", "base", "types"}
LONGEST_MODULE_LINES = 400

# Modules that need no test module of their own, each with the reason.
TESTED_ELSEWHERE = {
    "cli/__main__.py": "runs cli/entry.py, tested there",
    "keys/executor.py": "a protocol without behaviour",
    "keys/layout.py": "two names without behaviour",
}


@pytest.mark.parametrize("module", [m for m in modules() if m.path.name == "__init__.py"], ids=lambda m: m.name)
def test_front_of_a_room_holds_imports_and_a_sorted_all(module):
    body = module.tree.body
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    others = [node for node in body if not isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {alias.asname or alias.name for node in body if node not in others for alias in node.names}
    if not others and not imported:
        return
    assert len(others) == 1, f"{module.name} must hold imports and one __all__, nothing else"
    (assignment,) = others
    target = assignment.target if isinstance(assignment, ast.AnnAssign) else assignment.targets[0]
    assert ast.unparse(target) == "__all__", module.name
    names = ast.literal_eval(assignment.value)
    assert names == sorted(names), f"__all__ of {module.name} is not sorted"
    assert set(names) == imported, f"__all__ of {module.name} and its imports differ: {set(names) ^ imported}"


def test_no_module_has_a_name_that_says_nothing():
    bad = [module.name for module in modules() if FORBIDDEN_NAMES & set(module.name.removesuffix(".py").split("/"))]
    assert not bad


def test_no_module_has_outgrown_one_role():
    long = {module.name: lines for module in modules()
            if (lines := module.text.count("\n")) > LONGEST_MODULE_LINES and module.path.name != "keys.py"}
    assert not long, f"more than {LONGEST_MODULE_LINES} lines"


def test_every_module_says_what_it_is():
    silent = [module.name for module in modules() if module.text.strip() and not ast.get_docstring(module.tree)]
    assert not silent, "modules without a docstring"


def test_every_module_has_a_test_module():
    missing = {}
    for module in modules():
        if module.path.name == "__init__.py" or module.name in TESTED_ELSEWHERE:
            continue
        place = module.path.relative_to(SOURCE)
        test = TESTS / place.with_name(f"test_{place.name.lstrip('_')}")
        if not test.is_file():
            missing[module.name] = test.relative_to(TESTS).as_posix()
    assert not missing, "modules without the test module that mirrors them"


def test_the_list_of_exceptions_is_not_stale():
    names = {module.name for module in modules()}
    assert set(TESTED_ELSEWHERE) <= names
    for name in TESTED_ELSEWHERE:
        place = SOURCE.joinpath(name).relative_to(SOURCE)
        assert not (TESTS / place.with_name(f"test_{place.name}")).exists(), f"{name} has a test module now"


def test_every_room_has_a_readme():
    rooms = [folder for folder in SOURCE.iterdir() if (folder / "__init__.py").is_file()]
    assert rooms
    missing = [room.name for room in rooms if not (room / "README.md").is_file()]
    assert not missing, "rooms without a one-page README.md"


def test_importing_the_package_starts_nothing():
    """No module outside a function opens files, sockets or event loops: only names are made at import."""
    calls = {"open", "asyncio.run", "asyncio.get_event_loop", "subprocess.run", "subprocess.Popen", "print"}
    bad = []
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.If):
                continue
            bad += [f"{module.name}:{call.lineno}" for call in ast.walk(node)
                    if isinstance(call, ast.Call) and ast.unparse(call.func) in calls]
    assert not bad
