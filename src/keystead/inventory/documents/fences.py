"""Keys in blocks of code: lists with comments, trees, commands, constants."""

import re
from typing import Final

from .blocks import Code, Text, marked
from .columns import label_of
from .durations import duration
from .heads import is_relative
from .mentions import Findings, Mention, Place, Scope
from .tables import keys_of_cell
from .tokens import Likeness, likeness
from .vocabulary import COMMAND_TYPES, OTHER_COMMANDS, WRITING_COMMANDS

_PROGRAMS: Final = {
    "py",
    "python",
    "go",
    "golang",
    "js",
    "javascript",
    "ts",
    "typescript",
    "tsx",
    "jsx",
    "java",
    "kotlin",
    "rb",
    "ruby",
    "php",
    "rust",
    "rs",
    "cs",
    "csharp",
    "c#",
    "scala",
    "swift",
    "elixir",
    "ex",
    "c",
    "cpp",
    "c++",
    "lua",
    "dart",
}
_NEVER: Final = {
    "json",
    "jsonc",
    "json5",
    "sql",
    "diff",
    "html",
    "xml",
    "css",
    "mermaid",
    "dockerfile",
    "docker",
    "conf",
    "ini",
    "nginx",
    "env",
    "dotenv",
    "plantuml",
    "graphql",
    "http",
    "proto",
    "protobuf",
    "makefile",
}
_TREE: Final = re.compile(r"[├└┣┗│|`+]\s*[─━\-]{1,}\s?|│\s{2,}")
_PROMPT: Final = re.compile(
    r"^\s*(?:(?:[\w.-]+(?::\d+)?(?:\[\d+\])?>|\$|>|#\s)\s*)?(?:(?:redis|"
    r"valkey)-cli(?:\s+-\S+(?:\s+(?!\w*[:{<])\S+)?)*\s+)?(?:\d{1,2}[.)]\s+)?",
    re.IGNORECASE,
)
_TOKEN: Final = re.compile(
    r"\s*[-*•]?\s*[\"'`]?(?P<token>(?:<[^<>\n]{1,60}>|\$?\{(?:[^{}\n]|\{[^{}\n]*\})*\}|"
    r"[^\s<{\"'`,;()])+)[\"'`]?,?"
)
_COMMENT: Final = re.compile(
    r"\s*(?:#|//|--|/\*|;|→|->|=>|⇒|—|–|<-|←|\s-\s|:\s|=\s|\||\s{2,}|\t|"
    r"[(（])\s*(?P<text>.*)$"
)
_ASSIGNED: Final = re.compile(
    r"(?P<name>[A-Za-z_$][\w.$]*)\s*(?:\([^()]*\)\s*)?(?::\s*[\w\[\]<>., ]+?)?\s*(?:=>|:?=(?!=)|:|\breturn\b|"
    r"->)\s*(?:\([^()]*\)\s*=>\s*)?(?:f|r|b|@|\$|new\s+\w+\(|fmt\.Sprintf\(|"
    r"String\.format\()?\s*(?P<quote>[\"'`])(?P<value>(?:(?!(?P=quote)).){1,160})(?P=quote)(?P<after>[^\n]*)"
)
_LITERAL: Final = re.compile(
    r"(?:return|=>|:)\s*(?:f|"
    r"fmt\.Sprintf\()?(?P<quote>[\"'`])(?P<value>(?:(?!(?P=quote)).){2,160})(?P=quote)(?P<after>[^\n]*)"
)
_LENGTH: Final = re.compile(
    r"\b(?P<name>[A-Za-z_]\w*(?:TTL|_ttl|Ttl|EXPIRE\w*|Expir\w+|EXPIRY|_SECONDS|Seconds|"
    r"TIMEOUT|Timeout|LIFETIME)\w*)\s*(?::\s*\w+)?\s*:?=\s*(?P<value>[^\n;#]{1,60})"
)
_STATES_LENGTH: Final = re.compile(r"\bEX\s+(\d+)|\bPX\s+(\d+)")


def read_code(block: Code, scope: Scope, found: Findings) -> list[Mention]:
    """The keys that a block of code lists, and those that its commands touch."""
    language = block.language.strip("{}.")
    _lengths(block, found)
    if language in _NEVER or (scope.aside and language):
        return []
    lines = block.text.split("\n")
    if language in _PROGRAMS:
        return _constants(lines, block.line, scope, found)
    if scope.aside:
        return []
    if sum(bool(_TREE.search(line)) for line in lines) >= 2:
        return _tree(lines, block.line, scope, found)
    if records := _records(lines, block.line, scope, found):
        return records
    made = _lines(lines, block.line, scope, found, listing=language not in {"bash", "sh", "shell", "console", "zsh"})
    return made or (
        _constants(lines, block.line, scope, found)
        if not any(each.place is Place.COMMAND for each in found.mentions[-3:])
        else []
    )


def command_mention(text: str, line: int, scope: Scope) -> Mention | None:
    """The key that a command such as ``HSET user:<id> name x`` touches, or ``None`` if this is no command on a key."""
    words = _PROMPT.sub("", text, count=1).split()
    if len(words) < 2 or (words[0].upper() not in COMMAND_TYPES and words[0].upper() not in OTHER_COMMANDS):
        return None
    if words[0] != words[0].upper() and words[0] != words[0].lower():
        return None
    name = words[0].upper()
    token = words[1].strip("\"',`")
    if name == "SCAN" and "MATCH" in text.upper():
        token = re.split(r"\bMATCH\b", text, flags=re.IGNORECASE)[1].split()[0].strip("\"'")
    if likeness(token) < Likeness.LIKELY or is_relative(token):
        return None
    mention = Mention([token], line, Place.COMMAND, scope, doubt="only a command names it")
    mention.writes = name in WRITING_COMMANDS and name != "PUBLISH"
    if name in COMMAND_TYPES:
        mention.type_name = COMMAND_TYPES[name]
        if name == "SET" and re.search(r"\bNX\b", text):
            mention.type_name = "lock"
    stated = _STATES_LENGTH.search(text)
    if stated:
        mention.seconds = float(stated[1]) if stated[1] else float(stated[2]) / 1000
    elif name in {"EXPIRE", "SETEX", "PEXPIRE"} and len(words) > 2 and words[2].isdigit():
        mention.seconds = float(words[2]) / (1000 if name == "PEXPIRE" else 1)
    comment = re.search(r"\s(?:#|//|--)\s+(.+)$", text)
    if comment and name in WRITING_COMMANDS:
        mention.texts.append(Text(marked(comment[1]), line))
    return mention


def _lines(lines: list[str], first: int, scope: Scope, found: Findings, listing: bool) -> list[Mention]:
    """A key on each line, with a comment beside it, above it, or indented below it; and commands."""
    made: list[Mention] = []
    current: tuple[Mention, int] | None = None
    above: Text | None = None
    for number, raw in enumerate(lines):
        line = first + number
        indent = len(raw) - len(raw.lstrip())
        if not raw.strip():
            above = None
            continue
        command = command_mention(raw, line, scope)
        if command is not None:
            if above is not None and not command.texts:
                command.texts.append(above)
            found.mentions.append(command)
            continue
        comment = re.match(r"\s*(?:#|//|--|\*|/\*)\s+(.*)$", raw)
        if comment and likeness(comment[1].split()[0] if comment[1].split() else "") < Likeness.LIKELY:
            above = Text(marked(comment[1].strip(" */-=#")), line)
            continue
        mention = (
            _line(raw, line, scope)
            if listing and not (current and indent > current[1] and not _line_strong(raw))
            else None
        )
        if mention is not None:
            if above is not None and not mention.texts:
                mention.texts.append(above)
            found.mentions.append(mention)
            made.append(mention)
            current = (mention, indent)
        elif current and indent > current[1]:
            text = Text(marked(raw.strip()), line)
            label = label_of(text)
            if label and label[0] in {"type", "ttl", "purpose", "writers", "readers", "personal"}:
                current[0].cells.setdefault(label[0], label[2])
            else:
                current[0].texts.append(text)
        else:
            current = None
    return made


def _line_strong(raw: str) -> bool:
    found = _TOKEN.match(raw)
    return found is not None and likeness(found["token"].rstrip(":")) is Likeness.PLAIN


def _line(raw: str, line: int, scope: Scope) -> Mention | None:
    found = _TOKEN.match(raw)
    if not found:
        return None
    token = found["token"]
    after = raw[found.end() :]
    if (
        token.endswith(":")
        and re.match(r"\s+\S|$", after)
        and likeness(token[:-1]) >= Likeness.LIKELY
        and ":" in token[:-1]
    ):
        token, after = token[:-1], "  " + after
    relative = is_relative(token) and bool(scope.prefix)
    much = likeness(token)
    if much < Likeness.LIKELY and not relative:
        return None
    rest = _COMMENT.match(after)
    if after.strip() and rest is None:
        return None
    words = rest["text"].strip(" */)）") if rest else ""
    example = re.match(r"(?:e\.?g\.?,?|ex\.?|example|例如?|예)[:：\s]\s*(?P<key>\S+?)[)）]?$", words, re.IGNORECASE)
    mention = Mention([token], line, Place.PROSE if scope.example else Place.LINE, scope)
    if example:
        mention.examples.append(example["key"].rstrip("),"))
    elif words:
        mention.texts.append(Text(marked(words), line))
    return mention


def _tree(lines: list[str], first: int, scope: Scope, found: Findings) -> list[Mention]:
    """A tree drawn with lines, each branch of which is a segment or more of a key."""
    nodes: list[tuple[int, str, str, int]] = []
    for number, raw in enumerate(lines):
        plain = re.sub(r"[├└┣┗│┃─━|`+]", " ", re.sub(r"(?<=[├└`+|])-+", " ", raw))
        found_token = _TOKEN.match(plain)
        if not plain.strip() or not found_token:
            continue
        rest = _COMMENT.match(plain[found_token.end() :])
        depth = len(plain) - len(plain.lstrip(" -"))
        nodes.append(
            (depth, found_token["token"].strip("\"'"), rest["text"].strip(" )") if rest else "", first + number)
        )
    made: list[Mention] = []
    stack: list[tuple[int, str]] = []
    for index, (depth, token, words, line) in enumerate(nodes):
        while stack and stack[-1][0] >= depth:
            stack.pop()
        above = stack[-1][1] if stack else ""
        path = _joined(above, token)
        stack.append((depth, path))
        leaf = index + 1 >= len(nodes) or nodes[index + 1][0] <= depth
        told = re.search(r"\b(?:hash|string|list|set|zset|stream|sorted|json|ttl|counter)\b", words, re.IGNORECASE)
        if (leaf or told) and likeness(path) >= Likeness.LIKELY:
            mention = Mention([path], line, Place.LINE, scope, texts=[Text(marked(words), line)] if words else [])
            found.mentions.append(mention)
            made.append(mention)
    return made


def _joined(above: str, token: str) -> str:
    if not above:
        return token
    beginning = above.rstrip(":*/")
    if token.startswith(beginning + ":"):
        return token
    if above.endswith("*"):
        return beginning.rstrip(":") + ":" + token.lstrip(":")
    return above + token if above.endswith((":", "/", "_")) or token.startswith((":", "/", "_")) else f"{above}:{token}"


def _records(lines: list[str], first: int, scope: Scope, found: Findings) -> list[Mention]:
    """Blocks of ``key: ...``, ``type: ...`` lines, as YAML and forms have them."""
    made: list[Mention] = []
    for number, raw in enumerate(lines):
        label = label_of(Text(marked(raw.strip().removeprefix("- ")), first + number))
        if label is None:
            continue
        if label[0] == "key":
            spellings = keys_of_cell(Text(label[2].plain.strip("\"'"), label[2].line))[0]
            if spellings and likeness(spellings[0]) >= Likeness.LIKELY:
                made.append(Mention(spellings, first + number, Place.RECORD, scope))
        elif made and label[0] in {"type", "ttl", "purpose", "writers", "readers", "personal", "value"}:
            made[-1].cells.setdefault(label[0], Text(label[2].plain.strip("\"'"), label[2].line))
        elif made and label[0] == "example":
            made[-1].examples.append(label[2].plain.strip("\"'"))
    found.mentions.extend(made)
    return made


def _constants(lines: list[str], first: int, scope: Scope, found: Findings) -> list[Mention]:
    """String constants whose values are keys, with the comment beside or above them."""
    made: list[Mention] = []
    above = ""
    for number, raw in enumerate(lines):
        comment = re.match(r"\s*(?://+|#|/?\*+|--)\s*(.*?)\s*\**/?$", raw)
        if comment:
            above = comment[1]
            continue
        hit = _ASSIGNED.search(raw) or _LITERAL.search(raw)
        if hit:
            value = hit["value"]
            name = hit.groupdict().get("name") or ""
            if name:
                found.constants[name.split(".")[-1]] = value
            beside = re.search(r"(?://|#|--|/\*)\s*(.+?)\s*(?:\*/)?$", hit["after"])
            if likeness(value) >= (
                Likeness.LIKELY
                if re.search(
                    r"key|prefix|redis|cache|channel|lock",
                    name + scope.section[-1] if scope.section else name,
                    re.IGNORECASE,
                )
                else Likeness.PLAIN
            ):
                mention = Mention(
                    [value], first + number, Place.CONSTANT, scope, extra=[("constant", name)] if name else []
                )
                words = beside[1] if beside else above
                if words:
                    mention.texts.append(Text(marked(words), first + number))
                found.mentions.append(mention)
                made.append(mention)
        if raw.strip():
            above = ""
    return made


def _lengths(block: Code, found: Findings) -> None:
    for hit in _LENGTH.finditer(block.text):
        value = hit["value"].strip()
        seconds = duration(value)
        if seconds is None and (bare := re.fullmatch(r"(\d+)[,;]?", value.split("//")[0].strip())):
            seconds = float(bare[1])
        if seconds is not None:
            found.lengths[hit["name"]] = seconds
