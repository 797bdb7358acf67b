"""The project's text speaks of the project only."""

import re

from .source import project_text

MACHINE_PATH = re.compile(r"(?<![\w./~-])/(?:work|root|home/\w+|tmp/\w+)(?:/|\b)")
PACKAGE_HOST = re.compile(r"\b(?:pypi\.|pythonhosted\.)(?:org|io)\b")


def test_no_machine_path_is_written_down():
    found = [f"{name}:{number}: {line.strip()[:80]}" for name, text in project_text()
             for number, line in enumerate(text.splitlines(), 1) if MACHINE_PATH.search(line)]
    assert not found, "\n".join(found)


def test_no_package_host_is_written_down():
    found = [name for name, text in project_text() if PACKAGE_HOST.search(text)]
    assert not found


def test_the_patterns_find_what_they_look_for():
    assert MACHINE_PATH.search("see /" + "root/notes") and MACHINE_PATH.search("cp x /" + "tmp/brief/y")
    assert not MACHINE_PATH.search("embedded:///var/lib/keystead") and not MACHINE_PATH.search("bench/work/x")
    assert PACKAGE_HOST.search("https://pypi" + ".org/simple")
