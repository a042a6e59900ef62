"""What must be true of everything that netprobe writes out of a document, by the parsers of others.

Each proof is given the text for a genuine document and that for a tampered one. What the tampered
one has beside it may be other words, never another element, key, command or character.
"""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import yaml

Proof = Callable[[bytes, bytes], None]

_COMMENTS = {"cisco-asa": "!", "cisco-ios": "!"}
_ADDRESS = r"(?:\d+\.\d+\.\d+\.\d+|[0-9a-f]*:[0-9a-f:]+)"
# The parts of lines that differ from request to request, and what stands for them in a shape.
_PARTS = (
    (re.compile(r"(?<=description )\"[A-Za-z0-9 ._:/,()+=@-]*\""), "TEXT"),
    (re.compile(r"netprobe [0-9a-f]{6}(?: R\d+)?"), "MARK"),
    (re.compile(r"(?:np[-_]|NP-)[0-9a-f]{6}"), "NP"),
    (re.compile(rf"NP_{_ADDRESS}|NP_[A-Z0-9_]+_[0-9a-f]{{6}}|NP_\d+(?:[._][0-9a-f]*)+"), "GROUP"),
    (re.compile(rf"{_ADDRESS}(?:/\d+)?"), "ADDRESS"),
    (re.compile(r"\b(?:R?\d+(?:[-:]\d+)?)\b"), "NUMBER"),
    (re.compile(r"(?:eq|range NUMBER) NUMBER"), "PORTS"),
    (re.compile(r"\b(\w+)(?:'?,? ?'?(?:\1))+\b"), r"\1"),
    (re.compile(r"\{ (\w+) \}"), r"\1"),
)


def shapes_of(text: str, sign: str = "#") -> set[str]:
    """Give the lines without comments, with a word for all that differs from rule to rule."""
    found = set()
    for line in text.split("\n"):
        if line.lstrip()[:1] in (sign, ""):
            continue
        for pattern, word in _PARTS:
            line = pattern.sub(word, line)  # noqa: PLW2901 (the line becomes its shape)
        found.add(line)
    return found


def check_lines(syntax: str) -> Proof:
    """A device reads the lines that it reads of a genuine request, with other numbers."""
    sign = _COMMENTS.get(syntax, "#")

    def check(genuine: bytes, tampered: bytes) -> None:
        text = tampered.decode("ascii")
        assert text.replace("\n", "").isprintable()
        strange = shapes_of(text, sign) - shapes_of(genuine.decode(), sign)
        assert not strange, strange

    return check


def keys_in(value: Any) -> Iterator[Any]:
    """Give the keys of a document, however deep they stand."""
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list | tuple):
            yield from keys_in(inner)


def check_yaml(genuine: bytes, tampered: bytes) -> None:
    """YAML without tags, without a further document or key."""
    one, other = (list(yaml.safe_load_all(text)) for text in (genuine, tampered))
    assert len(other) <= len(one)
    assert known_keys(other) <= known_keys(one)


def known_keys(value: Any) -> set[Any]:
    """Give all keys, those of one group (named by role and digest) as one."""
    return {re.sub(r"NP_\w+_[0-9a-f]{6}", "GROUP", str(key)) for key in keys_in(value)}


def check_json(genuine: bytes, tampered: bytes) -> None:
    """JSON in ASCII, no further document, and no further key but names of settings and fields."""
    one, other = (list(_read_jsons(text.decode("ascii"))) for text in (genuine, tampered))
    assert len(other) <= len(one)
    assert known_keys(other) <= known_keys(one)


def _read_jsons(text: str) -> Iterator[Any]:
    decoder, place = json.JSONDecoder(), 0
    while text[place:].strip():
        place += len(text[place:]) - len(text[place:].lstrip())
        value, place = decoder.raw_decode(text, place)
        yield value


def check_terraform(genuine: bytes, tampered: bytes) -> None:
    """HCL of the same kinds of blocks, without templates."""
    import hcl2

    one, other = (hcl2.loads(text.decode("ascii")) for text in (genuine, tampered))
    assert _kinds_of_blocks(other) <= _kinds_of_blocks(one)
    strings = [line for line in tampered.decode().splitlines() if not line.startswith("#")]
    assert not re.search(r"[$%]\{", "\n".join(strings))


def _kinds_of_blocks(value: Any) -> set[str]:
    blocks = {f"resource {kind}" for one in value.get("resource", ()) for kind in one}
    return blocks | {key for key in value if not key.startswith("__")}


def check_csv(genuine: bytes, tampered: bytes) -> None:
    """Rows of the same length, and no cell that a spreadsheet takes for a formula."""
    texts = (text.decode("utf-8-sig") for text in (genuine, tampered))
    one, other = (list(csv.reader(io.StringIO(text, newline=""))) for text in texts)
    assert {len(row) for row in other} == {len(row) for row in one}
    for cell in (cell for row in other for cell in row):
        assert cell.isprintable()
        for part in re.split(r"[;,\t|]", cell):
            assert part.lstrip()[:1] not in set("=+-@")


def check_xlsx(genuine: bytes, tampered: bytes) -> None:
    """A workbook of the same sheets and columns, of texts only, made of well-formed XML."""
    import openpyxl

    one, other = (openpyxl.load_workbook(io.BytesIO(data)) for data in (genuine, tampered))
    assert other.sheetnames == one.sheetnames
    for sheet in other:
        assert sheet.max_column == one[sheet.title].max_column
        kinds = {cell.data_type for row in sheet.iter_rows() for cell in row}
        assert kinds <= {"s", "n"}  # n: empty
    with zipfile.ZipFile(io.BytesIO(tampered)) as archive:
        for name in archive.namelist():
            ElementTree.fromstring(archive.read(name))


def check_junit(genuine: bytes, tampered: bytes) -> None:
    """Well-formed XML of the same elements and attributes, without a document type."""
    one, other = (ElementTree.fromstring(text) for text in (genuine, tampered))
    assert _elements_of(other) <= _elements_of(one)
    assert b"<!DOCTYPE" not in tampered


def _elements_of(tree: ElementTree.Element) -> set[tuple[str, ...]]:
    return {(one.tag, *sorted(one.attrib)) for one in tree.iter()}


class _Tags(HTMLParser):
    """Collects tags with the names of their attributes, and how many scripts there are."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[tuple[str, ...]] = set()
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add((tag, *sorted(name for name, _ in attrs)))
        self.scripts += tag == "script"


def check_html(genuine: bytes, tampered: bytes) -> None:
    """A page of the same elements and attributes, with as many scripts."""
    one, other = _Tags(), _Tags()
    one.feed(genuine.decode())
    other.feed(tampered.decode())
    assert other.tags <= one.tags, other.tags - one.tags
    assert other.scripts == one.scripts


def check_text(_genuine: bytes, tampered: bytes) -> None:
    """Lines that do nothing to a terminal."""
    for line in tampered.decode().split("\n"):
        assert line.isprintable(), line


def check_markdown(genuine: bytes, tampered: bytes) -> None:
    """No HTML, link, image or mention that netprobe does not write itself."""
    check_text(genuine, tampered)
    text = re.sub(r"\\.", "", tampered.decode())
    known = re.sub(r"\\.", "", genuine.decode())
    for sign in ("<", "](", "![", "@", "`", "$"):
        assert (sign in text) <= (sign in known), sign


def check_github(genuine: bytes, tampered: bytes) -> None:
    """Workflow commands stand where netprobe writes them, and are of its own kinds."""
    check_text(genuine, tampered)
    kinds = {line.split(" ")[0] for line in tampered.decode().splitlines() if line[:2] == "::"}
    assert kinds <= {"::error", "::warning", "::notice"}


REQUESTS: Mapping[str, Proof] = {
    **{name: check_lines(name) for name in (
        "nftables", "iptables", "firewalld", "cisco-asa", "cisco-ios", "paloalto", "fortios",
        "junos", "windows", "ufw",
    )},
    "markdown": check_markdown, "text": check_text, "json": check_json, "csv": check_csv,
    "xlsx": check_xlsx, "tufin": check_json, "algosec": check_json,
    "terraform-aws": check_terraform, "terraform-openstack": check_terraform,
    "calico": check_yaml, "aerleon": check_yaml,
}  # fmt: skip
REPORTS: Mapping[str, Proof] = {
    "text": check_text, "brief": check_text, "wide": check_text, "map": check_text,
    "json": check_json, "html": check_html, "junit": check_junit, "markdown": check_markdown,
    "github": check_github,
}  # fmt: skip


def read_outputs(folder: Path, names: Mapping[str, Any]) -> dict[str, bytes]:
    """Give what was written, by format."""
    return {name: (folder / name).read_bytes() for name in names}
