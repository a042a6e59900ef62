"""The only home of YAML: a file of any content becomes a document with marks, or problems.

JSON inside of values is bounded here, too.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import yaml

from netprobe.errors import FileErrors, Problem
from netprobe.files import read_file
from netprobe.load.yaml import scalars
from netprobe.load.yaml.document import Document, Node, YamlPath, YamlPlace
from netprobe.load.yaml.wording import quoted
from netprobe.model.json_text import MAX_DEPTH, is_nested_deeper

# A value with its place takes about 1 kB of memory; ten thousand hosts are 100,000 values.
MAX_WRITTEN_VALUES = 250_000
# Aliases of aliases grow a small file into millions of values.
MAX_VALUES = 1_000_000

_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_BaseLoader: type = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class _Loader(_BaseLoader):  # type: ignore[misc]  # the C class has no annotations
    """PyYAML's parser (in C where it was built so) with the scalars of YAML 1.2."""

    yaml_implicit_resolvers = {  # noqa: RUF012  # PyYAML reads it from the class
        None: list(scalars.IMPLICIT)
    }


def read_document(path: str, problems: list[Problem], key: str | None = None) -> Document | None:
    """Read a file; None where it cannot be parsed. All problems go to ``problems``.

    ``key``: the file is no mapping, and the document is one that has it at this key.
    """
    raw = read_bytes(path, problems)
    return None if raw is None else parse(raw, problems, path, key)


def read_bytes(path: str, problems: list[Problem]) -> bytes | None:
    """Read the file's bytes; a file that cannot be read is a problem."""
    try:
        return read_file(path, "a YAML file")
    except FileErrors as error:
        problems.extend(error.problems)
        return None


def parse(
    raw: bytes, problems: list[Problem], name: str, key: str | None = None
) -> Document | None:
    """Parse bytes; None and at least one new problem where they are not a YAML mapping."""
    text = _decode_text(raw, problems, name)
    if text is None or not _characters_are_fine(text, problems, name):
        return None
    return _Parser(name, text, problems).document(key)


def read_documents(path: str, problems: list[Problem]) -> list[Document]:
    """Read all mappings of a file of several YAML documents, or of JSON; problems are added."""
    raw = read_bytes(path, problems)
    return [] if raw is None else parse_documents(raw, problems, path)


def parse_documents(raw: bytes, problems: list[Problem], name: str) -> list[Document]:
    """Parse all mappings of several YAML documents, or of JSON; problems are added."""
    text = _decode_text(raw, problems, name)
    if text is None:
        return []
    if text.lstrip().startswith(("{", "[")):
        # In JSON tabs stand between values only, where YAML allows none.
        text = text.replace("\t", " ")
    if not _characters_are_fine(text, problems, name):
        return []
    return list(_Parser(name, text, problems, many=True).documents())


def parse_inner(outer: Document, path: YamlPath, text: str) -> Document | None:
    """Parse the text of a value, itself YAML; None and a problem where it holds no mapping.

    The places are those of the outer file: exact where the text is a literal block ("|"), else
    that of the whole value.
    """
    mark = outer.mark_of(path)
    found: list[Problem] = []
    begin = outer.begin_of(path)
    if begin is not None:
        line, column = begin
        lines = (
            "" if one.rstrip() == "---" else " " * (column - 1) + one for one in text.split("\n")
        )
        text = "\n" * (line - 1) + "\n".join(lines)
    parser = _Parser(outer.file, text, found, many=True)
    is_fine = _characters_are_fine(text, found, outer.file)
    parsed = next(parser.documents(), None) if is_fine else None
    if begin is None:
        found = [Problem(outer.file, *mark, problem.text) for problem in found]
        if parsed is not None:
            _move_marks(parsed.root, mark)
    outer.problems.extend(found)
    return parsed and Document(outer.file, parsed.root, outer.problems)


def parse_json(text: str) -> object:
    """Parse JSON. Raises ValueError with the words for what is none, or is nested too deep."""
    too_deep = ValueError(f"this is nested deeper than {MAX_DEPTH} levels")
    try:
        value: object = json.loads(text)
    except RecursionError:
        raise too_deep from None
    except ValueError:
        raise ValueError("this is no JSON") from None
    if is_nested_deeper(value, MAX_DEPTH):
        raise too_deep
    return value


def _move_marks(node: Node, mark: YamlPlace) -> None:
    node.mark = mark
    node.keys = dict.fromkeys(node.keys, mark)
    for child in node.children.values():
        _move_marks(child, mark)


def head(path: str, wanted: tuple[str, ...], until: str = "") -> dict[str, str]:
    """Some top-level texts of a file that is known to be good, reading no further than needed.

    They stand before the key ``until``, if it is given.
    """
    found: dict[str, str] = {}
    with Path(path).open("rb") as stream:
        for key, value in _top_level(yaml.parse(stream, Loader=_Loader)):
            if key in wanted and value is not None:
                found[key] = value
            if len(found) == len(wanted) or key == until:
                break
    return found


def top_keys(raw: bytes) -> dict[str, str | None] | None:
    """Keys of the top mapping with the texts of scalars; None where there is no mapping."""
    problems: list[Problem] = []
    text = _decode_text(raw, problems, "")
    if text is None:
        return None
    try:
        found = dict(_top_level(yaml.parse(text, Loader=_Loader)))
    except yaml.YAMLError:
        return None
    return found or None


def _top_level(events: Iterator[yaml.Event]) -> Iterator[tuple[str, str | None]]:
    """Keys of the mapping at depth 1 with the value's text, or None for lists and mappings."""
    depth, key = 0, None
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            if depth == 1 and key is not None:
                yield key, None
                key = None
            elif depth == 0 and not isinstance(event, yaml.MappingStartEvent):
                return
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif depth == 1 and isinstance(event, yaml.ScalarEvent | yaml.AliasEvent):
            text = event.value if isinstance(event, yaml.ScalarEvent) else None
            if key is None:
                key = text
            else:
                yield key, text
                key = None


def _decode_text(raw: bytes, problems: list[Problem], name: str) -> str | None:
    encoding = "utf-16" if raw.startswith(_UTF16) else "utf-8-sig"
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line = before.count(b"\n") + 1
        column = len(before.rpartition(b"\n")[2].decode(encoding, "replace")) + 1
        words = (
            f"byte 0x{raw[error.start]:02x} at offset {error.start} is no {encoding[:6].upper()}"
        )
        problems.append(Problem(name, line, column, f"{words.rstrip('-')}, expected text in UTF-8"))
        return None


def _characters_are_fine(text: str, problems: list[Problem], name: str) -> bool:
    for bad in islice(_FORBIDDEN.finditer(text), 20):
        line = text.count("\n", 0, bad.start()) + 1
        column = bad.start() - text.rfind("\n", 0, bad.start())
        words = f"the character U+{ord(bad.group()):04X} is not allowed, expected printable text"
        problems.append(Problem(name, line, column, words))
    return not _FORBIDDEN.search(text)


class _Parser:
    """Parses one text into a document."""

    def __init__(
        self, name: str, text: str, problems: list[Problem], *, many: bool = False
    ) -> None:
        self.name = name
        self.text = text
        self.problems = problems
        self.many = many
        self.lines = text.split("\n") if many else []
        self.made: dict[int, Node] = {}
        self.open: set[int] = set()

    def document(self, key: str | None = None) -> Document | None:
        """The document, also where keys or tags are problems, so that the rest is checked too."""
        roots = self._compose_roots()
        return None if roots is None else self._make_document(roots[0] if roots else None, key)

    def documents(self) -> Iterator[Document]:
        """Give all documents that hold something; nothing of a text that is no YAML."""
        for root in self._compose_roots() or ():
            is_empty = isinstance(root, yaml.ScalarNode) and not root.value
            document = None if root is None or is_empty else self._make_document(root)
            if document is not None:
                yield document

    def _compose_roots(self) -> list[yaml.Node | None] | None:
        """Give the nodes of all documents; None after a problem of the whole text."""
        try:
            return list(yaml.compose_all(self.text, Loader=_Loader)) if self._is_safe() else None
        except yaml.MarkedYAMLError as error:
            self._add_syntax_problem(error)
            return None

    def _make_document(self, root: yaml.Node | None, key: str | None = None) -> Document | None:
        node = self._make_node(root) if root is not None else None
        if key is not None:
            inner = node or Node(None, (1, 1))
            node = Node({key: inner.value}, inner.mark, inner.size, {}, {key: inner})
        if node is None or not isinstance(node.value, dict):
            self._add_no_mapping(node)
            return None
        if node.size > MAX_VALUES:
            words = f"aliases make more than {MAX_VALUES} values of it, expected fewer"
            self._add_problem(node.mark, words)
            return None
        return Document(self.name, node, self.problems)

    def _is_safe(self) -> bool:
        """Refuse what compose() must not see: it recurses in C, deep nesting kills the process."""
        depth = documents = values = 0
        for event in yaml.parse(self.text, Loader=_Loader):
            values += isinstance(event, yaml.NodeEvent)
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
            if depth > MAX_DEPTH:
                words = f"nested deeper than {MAX_DEPTH} levels, expected fewer"
            elif values > MAX_WRITTEN_VALUES:
                words = f"more than {MAX_WRITTEN_VALUES:,} values stand before this, expected fewer"
            elif documents > 1 and not self.many:
                words = "a second YAML document starts here, expected one document in a file"
            else:
                continue
            self._add_problem(_mark_of(event), words)
            return False
        return True

    def _make_node(self, node: yaml.Node) -> Node:
        key = id(node)
        if key in self.open:
            words = "this anchor contains an alias of itself, expected no such circle"
            self._add_problem(_mark_of(node), words)
            return Node(None, _mark_of(node))
        if key not in self.made:
            self.open.add(key)
            if isinstance(node, yaml.ScalarNode):
                self.made[key] = self._make_scalar(node)
            elif isinstance(node, yaml.SequenceNode):
                self.made[key] = self._make_list(node)
            else:
                self.made[key] = self._make_mapping(node)
            self.open.discard(key)
        return self.made[key]

    def _make_scalar(self, node: yaml.ScalarNode) -> Node:
        """Make a scalar's value by the rules of YAML 1.2."""
        mark = _mark_of(node)
        try:
            begin = self._find_begin(mark) if self.many and node.style == "|" else None
            return Node(scalars.read(node.tag, node.value), mark, begin=begin)
        except StopIteration:
            self._add_meaningless_tag(node)
        except ValueError as error:
            words = f"{quoted(node.value)} does not fit ({error}), expected a shorter value"
            self._add_problem(mark, words)
        return Node(node.value, mark)

    def _find_begin(self, mark: YamlPlace) -> YamlPlace:
        """Find where the text of a literal block begins: behind the spaces of its first line."""
        below = islice(self.lines, mark[0], None)
        column = next((len(one) - len(one.lstrip()) + 1 for one in below if one.strip()), 1)
        return mark[0] + 1, column

    def _make_list(self, node: yaml.SequenceNode) -> Node:
        if node.tag != scalars.TAG + "seq":
            self._add_meaningless_tag(node)
        items = [self._make_node(item) for item in node.value]
        made = Node([item.value for item in items], _mark_of(node), 1 + sum(i.size for i in items))
        made.children = dict(enumerate(items))
        return made

    def _make_mapping(self, node: yaml.Node) -> Node:
        """Make a mapping with text keys, each of them once."""
        if node.tag != scalars.TAG + "map":
            self._add_meaningless_tag(node)
        made = Node({}, _mark_of(node))
        for key_node, value_node in node.value:
            key = self._check_key(key_node, made)
            value = self._make_node(value_node)
            made.size += value.size
            if key is not None:
                made.keys[key] = _mark_of(key_node)
                made.children[key] = value
        made.value = {key: child.value for key, child in made.children.items()}
        return made

    def _check_key(self, node: yaml.Node, mapping: Node) -> str | None:
        mark = _mark_of(node)
        if not isinstance(node, yaml.ScalarNode):
            words = "a list or mapping is the key here, expected a name"
        elif node.value == "<<" and not node.style:
            words = 'a merge key ("<<") is not part of YAML 1.2, expected the keys written out'
        elif not node.value:
            words = "the key is empty, expected a name"
        elif node.value in mapping.keys:
            again = f"stands here a second time (first in line {mapping.keys[node.value][0]})"
            words = f"the key {quoted(node.value)} {again}, expected every key once"
        else:
            return str(node.value)
        self._add_problem(mark, words)
        return None

    def _add_meaningless_tag(self, node: yaml.Node) -> None:
        if self.many:
            return  # files of other programs have tags of their own, such as !vault
        words = f"the tag {quoted(node.tag)} means nothing here, expected no tag"
        self._add_problem(_mark_of(node), words)

    def _add_no_mapping(self, node: Node | None) -> None:
        key = "kind" if self.many else "schema"
        expected = f'expected a mapping that has the key "{key}"'
        if node is None or node.value is None:
            self._add_problem((1, 1), f"the file is empty, {expected}")
        else:
            kind = "a list" if isinstance(node.value, list) else "a single value"
            self._add_problem(node.mark, f"the file holds {kind}, {expected}")

    def _add_syntax_problem(self, error: yaml.MarkedYAMLError) -> None:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        lines = self.text.split("\n")
        rest = lines[line][column:] if line < len(lines) else ""
        words = f"not valid YAML: {error.problem}"
        if error.context and error.context_mark:
            words += f" ({error.context} that starts in line {error.context_mark.line + 1})"
        self._add_problem((line + 1, column + 1), _AT.get(rest[:1], words))

    def _add_problem(self, mark: YamlPlace, words: str) -> None:
        self.problems.append(Problem(self.name, mark[0], mark[1], words))


def _mark_of(thing: yaml.Node | yaml.Event) -> YamlPlace:
    mark = thing.start_mark
    assert mark is not None
    return mark.line + 1, mark.column + 1


# The character at the place of a syntax error decides its words: the messages of PyYAML's C and
# Python parsers differ.
_RESERVED = "a value cannot begin with this character, expected it in quotes"
_AT = {
    "\t": "a tab stands in the indentation, expected spaces",
    ":": 'a ":" is not allowed at this place, expected quotes around a value that has one',
    **dict.fromkeys("@`%", _RESERVED),
}
