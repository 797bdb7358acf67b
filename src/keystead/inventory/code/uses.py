"""Finds every use of a key: calls to clients, through the program's own helpers and wrappers, with what they imply."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from keystead.inventory.code.clients import Clients, Strength
from keystead.inventory.code.commands import Access, Keys, command_of_method
from keystead.inventory.code.durations import Durations
from keystead.inventory.code.expressions import SELF, Call, Expr, Items, Member, Name
from keystead.inventory.code.frameworks import (
    annotation_wishes,
    cache_wish,
    lock_wish,
    redisson_wish,
    spring_wish,
    template_wish,
)
from keystead.inventory.code.project import Project
from keystead.inventory.code.resolving import Frame, Resolver, bindings, frame_of
from keystead.inventory.code.resolving_calls import elements, functions_called
from keystead.inventory.code.scopes import CallSite, Scope
from keystead.inventory.code.scripts import script_calls
from keystead.inventory.code.shapes import Shape, Var, could_be_a_key, describe, joined
from keystead.inventory.code.wishes import Wish, wishes_of
from keystead.inventory.models import Certainty, Expiry, Fact, Note, Rule, Source

_MOST_CALLERS: Final = 300  # of one function
_LONGEST_WAY: Final = 4  # from a command up through functions that pass a key on
_MOST_STEPS: Final = 12_000  # to find all uses of one call's key


_PASSED_ON: Final = re.compile(r"(?:^|_)(?:key|suffix|name|path|topic|channel)$")  # names of what may be part of a key


@dataclass(frozen=True, slots=True)
class Use:
    """One place where a key is used."""

    shape: Shape
    kind: str
    command: str
    type: str
    access: Access
    ttl: Fact[Expiry] | None
    drops_ttl: bool
    function: str
    source: Source
    spelling: str
    strength: Strength
    doubt: str = ""  # why the pattern itself may be wrong


class UseFinder:
    """Looks at every call of a project."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._resolver = Resolver(project)
        self._clients = Clients(self._resolver)
        self._durations = Durations(self._resolver)
        self._callers: dict[int, list[CallSite]] = {}
        self._enough = 0
        self.uses: list[Use] = []
        self.notes: dict[Note, None] = {}

    @property
    def resolver(self) -> Resolver:
        return self._resolver

    def find(self) -> None:
        """Fill ``uses`` and ``notes``."""
        for file in self._project.files.values():
            for site in file.calls:
                self._look_at(site)

    def _look_at(self, site: CallSite) -> None:
        frame = frame_of(site)
        for wish, strength in self._wishes(site, frame):
            self._enough = self._resolver.taken + _MOST_STEPS
            self._resolver.assumed = {}
            self._project.wanting = True
            try:
                self._follow(wish, strength, frame, site, 0)
            except RecursionError:
                source = Source(site.scope.file.path, site.call.line)
                self.notes[Note(f"the key of {wish.command} is too deep to follow", source)] = None
            finally:
                self._project.wanting = False

    def _wishes(self, site: CallSite, frame: Frame) -> Iterator[tuple[Wish, Strength]]:
        call, language = site.call, site.scope.file.language
        method = call.method
        if not method:
            return
        if method.startswith("@"):
            for each in annotation_wishes(site):
                yield each, Strength.STRONG
            return
        cached = cache_wish(call, site)
        if cached is not None:
            yield cached, Strength.STRONG
            return
        for each in script_calls(call, frame, self._resolver):
            yield each, Strength.STRONG
        if language == "java":
            spring = spring_wish(call, lambda expr: _declared(self._resolver, expr, frame)) or template_wish(
                call, self._is_template(call, frame))
            if spring is not None:
                yield spring, Strength.STRONG
                return
        strong: Strength | None = None
        if method.startswith("get") and language == "java":
            strong = self._clients.strength(call, frame)
            found = redisson_wish(call) if strong is Strength.STRONG else None
            if found is not None:
                yield found, Strength.STRONG
                return
        if method in ("lock", "Lock", "acquire", "using", "NewMutex"):
            locked = lock_wish(call, self._clients.strength(call, frame) is Strength.STRONG)
            if locked is not None:
                yield locked, Strength.STRONG
                return
        command = command_of_method(method)
        if command is None or command.keys is Keys.SCRIPT:
            return
        strength = self._clients.accepts(call, command, frame)
        if strength is not Strength.NONE:
            for each in wishes_of(call, command, language):
                yield each, strength

    def _is_template(self, call: Call, frame: Frame) -> bool:
        receiver = call.receiver
        return isinstance(receiver, Name | Member) and (
            "template" in receiver.name.lower() and self._clients.strength(call, frame) is not Strength.NONE)

    # -- following a key ------------------------------------------------------------

    def _follow(self, wish: Wish, strength: Strength, frame: Frame, site: CallSite, way: int) -> None:
        if self._resolver.taken > self._enough:
            return
        forms = self._resolver.forms(wish.expr, frame)
        if not any(shape.text for shape in forms):
            items = elements(self._resolver, wish.expr, frame, 0)
            if items:
                for item, where in items[:24]:
                    if not isinstance(item, Items):
                        self._follow(replace(wish, expr=item), strength, where, site, way + 1)
                return
        for shape in forms:
            first = shape.begins_open
            if first is not None and first.asked is not None and way < _LONGEST_WAY \
                    and self._from_callers(wish, strength, frame, first.asked, way):
                continue
            last = shape.parts[-1]
            if isinstance(last, Var) and last.asked is not None and way < _LONGEST_WAY \
                    and _PASSED_ON.search(last.name) and self._callers_say_more(last.asked) \
                    and self._from_callers(wish, strength, frame, last.asked, way):
                continue
            if first is not None and first.otherwise:
                shape = joined([Shape((first.otherwise,), Certainty.IMPLIED), Shape(shape.parts[1:])])
            if shape.has_words:
                self._keep(wish, shape, strength, frame, site, way)
            elif strength is Strength.STRONG or not command_is_plain(wish.command):
                self._leave(wish, shape, frame, site)

    def _from_callers(self, wish: Wish, strength: Strength, frame: Frame, asked: tuple[Scope, str], way: int) -> bool:
        """Take the view of every caller of the function that a key's parameter belongs to. Whether there is one."""
        scope, name = asked
        before = self._resolver.assumed
        if (scope, name) in before:
            return False
        found = False
        for caller in self.callers(scope):
            env = bindings(scope, caller.call, frame_of(caller))
            if (scope, name) not in env:
                continue
            found = True
            self._resolver.assumed = {**before, **env}
            self._follow(wish, strength, frame, caller, way + 1)
        self._resolver.assumed = before
        return found

    def _callers_say_more(self, asked: tuple[Scope, str]) -> bool:
        """Whether a caller gives a parameter that ends a key text of its own: ``remember(f"page:{n}")``."""
        scope, name = asked
        for caller in self.callers(scope):
            given = bindings(scope, caller.call, frame_of(caller)).get((scope, name))
            if given is not None and any(":" in shape.text for shape in self._resolver.forms(*given)):
                return True
        return False

    def callers(self, scope: Scope) -> list[CallSite]:
        """Calls that mean this function."""
        known = self._callers.get(id(scope))
        if known is None:
            known = [site for site in self._project.sites(scope) if self._means(site, scope)][:_MOST_CALLERS]
            self._callers[id(scope)] = known
        return known

    def _means(self, site: CallSite, scope: Scope) -> bool:
        if scope.name in ("__init__", "constructor", "initialize") or scope.name == scope.class_name:
            return True
        frame = frame_of(site)
        self._resolver.refill(400)
        functions = functions_called(self._resolver, site.call, frame)
        if functions:
            return any(each is scope for each, _ in functions)
        receiver = site.call.receiver
        owner = scope.class_name.lower()
        if receiver is None or not owner:
            return False
        name = receiver.name if isinstance(receiver, Name | Member) else receiver.method if isinstance(receiver,
                                                                                                       Call) else ""
        word = name.lower().replace("_", "")
        return name != SELF and len(word) > 3 and (word in owner or owner in word)

    # -- what was found ------------------------------------------------------------

    def _keep(self, wish: Wish, shape: Shape, strength: Strength, frame: Frame, site: CallSite, way: int) -> None:
        if not could_be_a_key(shape) or (strength is Strength.WEAK and not _likely(shape, wish)):
            return
        file = site.scope.file
        source = Source(file.path, site.call.line)
        ttl: Fact[Expiry] | None = None
        if wish.lasting is not None:
            if wish.lasting.rule is Rule.UNTIL:
                words = describe(wish.lasting.expr)
                ttl = Fact(Expiry(Rule.UNTIL, None, words), Certainty.STATED, source, words)
            else:
                ttl = self._durations.expiry(wish.lasting.expr, frame, wish.lasting.unit, source, wish.lasting.rule)
        spelling = file.text(wish.span) if wish.span is not None and not way else ""
        doubt = ""
        if strength is Strength.WEAK and command_is_plain(wish.command):
            doubt = "nothing but a name says that this goes to a Redis"
        elif shape.begins_open is not None:
            doubt = f"begins with {{{shape.begins_open.name}}}, which could not be followed"
        self.uses.append(Use(shape, wish.kind, wish.command, wish.type, wish.access, ttl, wish.drops_ttl,
                             site.scope.qualified, source, spelling, strength, doubt))

    def _leave(self, wish: Wish, shape: Shape, frame: Frame, site: CallSite) -> None:
        where = frame.scope
        source = Source(where.file.path, frame.line or site.call.line)
        what = describe(wish.expr)
        first = shape.begins_open
        if first is not None and first.asked is not None:
            function = first.asked[0].qualified or "a function"
            reason = f"a parameter of {function}, and no call that says more was found"
        else:
            reason = "only a run of the program knows"
        self.notes[Note(f"the {'channel' if 'channel' in wish.kind else 'key'} of {wish.command} is {what}: {reason}",
                        source)] = None


def command_is_plain(name: str) -> bool:
    """Whether methods of that name are common outside clients of a Redis."""
    command = command_of_method(name)
    return command is not None and command.plain


def _likely(shape: Shape, wish: Wish) -> bool:
    """Of a call that only may go to a Redis: a plain word is likely no key, unless the command is a telling one."""
    if not command_is_plain(wish.command):
        return True
    parted = len(shape.parts) > 1 and any(mark in shape.text for mark in "/.|-")
    return (":" in shape.text or parted) and not shape.text.endswith((".json", ".txt", ".html", ".py"))


def _declared(resolver: Resolver, expr: Expr, frame: Frame) -> str:
    """The words of a declared type."""
    if isinstance(expr, Name):
        for scope in frame.scope.around():
            if expr.name in scope.types:
                return scope.types[expr.name]
    if isinstance(expr, Member):
        for scope, _ in resolver.objects(expr.base, frame, 10):
            if expr.name in scope.types:
                return scope.types[expr.name]
    return ""
