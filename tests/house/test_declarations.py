"""Every key is declared once, fully, and named nowhere else."""

import re

import pytest

from keystead.app import App
from keystead.keys import Layout
from keystead.settings import Settings

from .source import modules, scripts

KEY_LISTS = {"keys.py", "stats.py"}


@pytest.fixture(scope="module")
def registry():
    return App(Settings()).registry(Layout.PLAIN)


def literal_heads(registry) -> set[str]:
    """What each pattern begins with, as far as that is distinctive; whole patterns where they have no variable."""
    heads = set()
    for declaration in registry:
        head, variable, _ = declaration.pattern.partition("{")
        head = head.rstrip("*")
        if ":" in head or not variable:
            heads.add(head)
    return heads


def test_every_declaration_says_everything(registry):
    silent = []
    for declaration in registry:
        for attribute in ("pattern", "kind", "type", "purpose", "room"):
            if not getattr(declaration, attribute):
                silent.append(f"{declaration.pattern}: {attribute}")
        if declaration.kind != "opaque":
            silent += [f"{declaration.pattern}: {what}" for what in ("writers", "readers")
                       if not getattr(declaration, what)]
    assert list(registry), "no declarations were collected"
    assert not silent


def test_no_key_is_spelled_outside_the_key_lists(registry):
    heads = literal_heads(registry)
    beginnings = tuple(head for head in heads if head.endswith(":"))
    found = []
    for module in modules():
        if module.path.name in KEY_LISTS:
            continue
        found += [f"{module.name}:{line}: {text[:60]!r}" for line, text in module.strings()
                  if text in heads or text.startswith(beginnings)]
    for script in scripts():
        text = script.read_text(encoding="utf-8")
        found += [f"{script.name}: {literal!r}" for literal in re.findall(r"['\"]([^'\"\n]+)['\"]", text)
                  if literal.startswith(beginnings)]
    assert not found, "\n".join(found)


def test_the_namespace_of_another_program_is_never_written():
    """Its one declaration is the only place that may say it."""
    name, declared = "asynq" + ":", ("jobs/keys.py", "asynq" + ":*")
    assert not [(module.name, text) for module in modules() for _, text in module.strings()
                if text.startswith(name) and (module.name, text) != declared]


def test_every_script_that_a_declaration_names_exists(registry):
    known = {"/".join(script.relative_to(script.parents[1]).parts).replace("scripts/", "") for script in scripts()}
    known |= {f"{script.parents[1].name}/{script.name}" for script in scripts()}
    missing = {(declaration.pattern, name) for declaration in registry for name in declaration.scripts
               if name not in known and not any(str(script).endswith(name) for script in scripts())}
    assert not missing
