"""The shape of rooms and modules: fronts, names, sizes, and a test module for each."""

import ast

import pytest

from .source import SOURCE, TESTS, modules

FORBIDDEN_NAMES = {"utils", "helpers", "common", "core", "base", "types"}
LONGEST_MODULE_LINES = 400

# Modules that hold names only and do nothing.
WITHOUT_BEHAVIOUR = {"engine/failures.py", "keys/executor.py"}

# Modules that are tested under another name.
TESTED_IN = {
    "backup/checking.py": "backup/test_taking.py",
    "backup/dumping.py": "backup/test_restoring.py",
    "backup/installation.py": "backup/test_restoring.py",
    "backup/keys.py": "backup/test_taking.py",
    "backup/models.py": "backup/test_unpacking.py",
    "backup/placing.py": "backup/test_restoring.py",
    "backup/rows.py": "backup/test_restoring.py",
    "backup/scratch.py": "backup/test_restoring.py",
    "backup/sql.py": "backup/test_taking.py",
    "backup/unfinished.py": "backup/test_restoring.py",
    "cli/__main__.py": "cli/test_entry.py",
    "cli/contacts.py": "cli/test_messages.py",
    "content/keys.py": "content/test_stats.py",
    "identity/keys.py": "identity/test_stats.py",
    "messaging/email/keys.py": "messaging/email/test_stats.py",
    "messaging/links/keys.py": "messaging/links/test_stats.py",
    "messaging/push/keys.py": "messaging/push/test_stats.py",
    "messaging/sms/keys.py": "messaging/sms/test_stats.py",
    "messaging/webhooks.py": "messaging/sms/test_stats.py",
    "operations/keys.py": "operations/test_alerts.py",
    "operations/models.py": "operations/test_alerts.py",
    "reminders/keys.py": "reminders/test_stats.py",
    "engine/listener.py": "engine/test_hub.py",
    "survey/report_style.py": "survey/test_report_html.py",
    "messaging/email/overview.py": "messaging/sending/test_overview.py",
    "messaging/push/overview.py": "messaging/sending/test_overview.py",
    "messaging/sms/overview.py": "messaging/sending/test_overview.py",
    "reminders/overview.py": "messaging/sending/test_overview.py",
    "web/people.py": "scenarios/test_a_reminder_goes_out.py",
}


@pytest.mark.parametrize("module", [m for m in modules() if m.path.name == "__init__.py"], ids=lambda m: m.name)
def test_front_of_a_room_holds_imports_and_a_sorted_all(module):
    body = module.tree.body
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    lazy = [node for node in body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    if lazy:  # a front that opens when it is used
        assert [ast.unparse(node) for node in lazy[0].orelse] == ["__getattr__ = opened_when_used(__name__)"]
        body = [*lazy[0].body, *(node for node in body if isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr))]
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


def mirrors(module):
    """Where a module may be tested: in the test module of its name, or of the whole it is a part of.

    ``lock_plain.py`` is a part of ``lock.py`` beside it, and may be tested in ``test_lock.py``.
    """
    place = module.path.relative_to(SOURCE)
    words = place.stem.strip("_").split("_")
    for length in range(len(words), 0, -1):
        whole = "_".join(words[:length])
        if length == len(words) or module.path.with_name(f"{whole}.py").is_file():
            yield TESTS / place.with_name(f"test_{whole}.py")


def test_every_module_has_a_test_module():
    excused = WITHOUT_BEHAVIOUR | set(TESTED_IN)
    # Steps of the tables are tested together: the whole line is walked on both databases.
    missing = [module.name for module in modules() if module.path.name != "__init__.py"
               and not module.name.startswith("store/migrations/versions/")
               and module.name not in excused and not any(test.is_file() for test in mirrors(module))]
    assert not missing, "modules without the test module that mirrors them"


def test_the_lists_of_exceptions_are_not_stale():
    by_name = {module.name: module for module in modules()}
    assert set(by_name) >= WITHOUT_BEHAVIOUR | set(TESTED_IN)
    needless = [name for name in (*WITHOUT_BEHAVIOUR, *TESTED_IN)
                if any(test.is_file() for test in mirrors(by_name[name]))]
    assert not needless, "these have a test module of their own now"
    assert all((TESTS / test).is_file() for test in TESTED_IN.values())


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


@pytest.mark.parametrize("module", [m for m in modules() if m.path.name == "__init__.py"
                                    and "opened_when_used" in m.path.read_text()], ids=lambda m: m.name)
def test_a_front_that_opens_when_used_offers_nothing_named_like_a_module(module):
    """Whoever imported that module first would get it instead of what is offered."""
    offered = next(ast.literal_eval(node.value) for node in module.tree.body
                   if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
    inside = {path.stem for path in module.path.parent.iterdir()}
    assert not inside & set(offered)
