"""YAML 1.2 scalars, marks, and whatever else can be wrong with a file before it is a matrix."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from netprobe.errors import Problem
from netprobe.load.yaml.document import Document
from netprobe.load.yaml.scalars import text_of
from netprobe.load.yaml.source import head, parse, read_document
from netprobe.model.printable import yaml_scalar
from tests.rights import without_rights


def read(text: str | bytes) -> Document:
    """A document that must have no problems."""
    problems: list[Problem] = []
    document = parse(text if isinstance(text, bytes) else text.encode(), problems, "file.yaml")
    assert [str(problem) for problem in problems] == []
    assert document is not None
    return document


def value_of(scalar: str) -> object:
    """What a scalar means as the value of a key."""
    return read(f"key: {scalar}\n").get(("key",))


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("No", "No"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("22:30", "22:30"),
        ("1:20:30", "1:20:30"),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("1_0.5", "1_0.5"),
        ("+12", 12),
        ("4.20", 4.2),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-.inf", -math.inf),
        ("2026-11-20", "2026-11-20"),
        ("2026-11-20T10:00:00Z", "2026-11-20T10:00:00Z"),
        ("~", None),
        ("", None),
        ("NULL", None),
        ("'5'", "5"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("=", "="),
        ("10.0.0.1", "10.0.0.1"),
        ("fd00::10", "fd00::10"),
    ],
)
def test_scalar(scalar: str, value: object) -> None:
    """A scalar means what YAML 1.2's core schema says, not what YAML 1.1 made of it."""
    found = value_of(scalar)

    assert found == value
    assert isinstance(found, bool) == isinstance(value, bool)


def python_number(text: str) -> int | float | None:
    """What Python reads in digits, signs, points and exponents: YAML 1.2 has the same grammar."""
    for reader in (int, float):
        try:
            return reader(text)
        except ValueError:
            continue
    return None


@given(st.text("0123456789+-.eE_:", min_size=1, max_size=12))
@example("1_0")
@example("1e5")
@example("00")
@example("1.")
@example("-0")
@example("190:20:30")
def test_numbers_are_pythons(text: str) -> None:
    """Texts of digits and signs are numbers exactly where they are numbers without YAML 1.1."""
    problems: list[Problem] = []
    document = parse(f"key: {text}\n".encode(), problems, "f")
    assume(document is not None and not problems)
    assert document is not None
    value = document.get(("key",))
    assume(not isinstance(value, list | dict))

    wanted = None if "_" in text or ":" in text else python_number(text)

    if wanted is None:
        assert value == text
    else:
        assert value == wanted
        assert text_of(value) == text


# Texts as people write them: no controls, surrogates, or characters that are no characters.
LETTERS = st.characters(
    exclude_categories=["Cc", "Cs", "Cn"], exclude_characters="\u2028\u2029\ufeff\x85"
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(LETTERS, max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(LETTERS, min_size=1), inner)
    ),
    max_leaves=12,
)


@pytest.mark.slow
@given(st.dictionaries(st.text(LETTERS, min_size=1), JSON_VALUES))
@example({"<<": {"on": "on"}})
def test_json_is_yaml(values: dict[str, object]) -> None:
    """JSON gives the values that a JSON reader gives: quoted texts are never anything else."""
    assert read(json.dumps(values, ensure_ascii=False)).value == values


@given(st.text(LETTERS, max_size=20))
@example("0E0")
@example("1e3")
@example("1.2.3.4/5")
def test_a_written_scalar_reads_back(text: str) -> None:
    """A text that init or ``matrix show`` writes comes back as the same text, in YAML 1.1 too."""
    written = yaml_scalar(text)

    assert value_of(written) == text
    assert yaml.safe_load(written) == text


@given(
    st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))
)
def test_any_bytes(raw: bytes) -> None:
    """No bytes raise: they give a document, or at least one problem at a place in the file."""
    problems: list[Problem] = []

    document = parse(raw, problems, "f")

    assert document is not None or problems
    for problem in problems:
        assert 1 <= problem.line <= raw.count(b"\n") + raw.count(b"\r") + 2 + raw.count(b"\x85") * 2
        assert problem.column >= 1
        assert str(problem).isprintable()


@given(st.text("[]{}-?:,#&*!|>'\"%@` \n\ta1\\<", max_size=80))
def test_any_punctuation(text: str) -> None:
    """No mixture of YAML's own signs raises."""
    problems: list[Problem] = []

    assert parse(text.encode(), problems, "f") is not None or problems


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "- " * 100_000, "{a: " * 100_000, "? " * 100_000, "[" * 2000 + "]" * 2000],
)
def test_deep_nesting(text: str) -> None:
    """Nesting that overflows the stack of PyYAML's C code is one problem, not a dead process."""
    problems: list[Problem] = []

    assert parse(text.encode(), problems, "f") is None
    assert [problem.text for problem in problems] == [
        "nested deeper than 100 levels, expected fewer"
    ]


def test_aliases_do_not_explode() -> None:
    """Aliases of aliases of aliases are refused before anybody walks through a billion values."""
    lines = ["l0: &l0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 10)]
    problems: list[Problem] = []

    assert parse("\n".join(lines).encode(), problems, "f") is None
    assert "aliases make more than 1000000 values" in str(problems[0])


def test_anchors_and_aliases() -> None:
    """Plain anchors and aliases are fine."""
    assert read("a: &ports [1, 2]\nb: *ports\n").value == {"a": [1, 2], "b": [1, 2]}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_byte_order_marks(encoding: str) -> None:
    """A byte order mark does no harm, and UTF-16 with one (PowerShell's ``>``) is read."""
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""
    raw = (mark + "schéma: x\n").encode(encoding)

    assert read(raw).value == {"schéma": "x"}


def test_windows_lines() -> None:
    """CRLF lines are lines: the place of a problem counts them once."""
    problems: list[Problem] = []

    parse(b"a: 1\r\nb: 2\r\na: 3\r\n", problems, "f")

    assert str(problems[0]).startswith('f:3:1: the key "a" stands here a second time')


def test_places() -> None:
    """Every value and key has its line and column, from 1; what is not there has its parent's."""
    document = read("hosts:\n  one:\n    roles: [a, b]\n")

    assert document.mark_of(("hosts", "one", "roles", 1)) == (3, 16)
    assert document.mark_of_key(("hosts", "one")) == (2, 3)
    assert document.mark_of(("hosts", "one", "address")) == (3, 5)
    assert document.mark_of_key(("schema",)) == (1, 1)
    assert document.place(("hosts", "one")) == "file.yaml:2:3"


def problem_of(path: Path) -> str:
    """The one problem of a file that cannot be read."""
    problems: list[Problem] = []
    assert read_document(str(path), problems) is None
    return str(problems[0])


def test_unreadable_paths(tmp_path: Path) -> None:
    """A missing file and a directory are problems of the file, without a place in it."""
    missing = tmp_path / "no.yaml"

    assert problem_of(missing) == f"{missing}: there is no such file, expected a YAML file"
    assert problem_of(tmp_path) == f"{tmp_path}: this is a directory, expected a YAML file"
    assert "there is no such file" in problem_of(Path(__file__) / "x.yaml")


def test_no_permission(tmp_path: Path) -> None:
    """A file that one may not read says so."""
    locked = tmp_path / "locked.yaml"
    locked.touch(mode=0o000)

    with without_rights():
        problem = problem_of(locked)
    assert problem.endswith("no permission to read it, expected a YAML file")


def test_odd_names(tmp_path: Path) -> None:
    """Names that no file can have are problems like others."""
    assert "no file can have this name" in problem_of(Path("a\0b.yaml"))
    assert "cannot be read" in problem_of(tmp_path / ("x" * 5000 + ".yaml"))


@pytest.mark.slow
def test_too_much(tmp_path: Path) -> None:
    """A file of too many bytes, or of more values than memory should hold, is not read."""
    path = tmp_path / "f.yaml"
    path.write_text("a: " + "b" * 16 * 1024 * 1024)
    assert problem_of(path).endswith("larger than 16 MiB, expected a YAML file")
    path.write_text("a:\n" + "  - b\n" * 260_000)
    words = "more than 250,000 values stand before this, expected fewer"
    assert problem_of(path) == f"{path}:249999:5: {words}"


def test_head_stops_early(tmp_path: Path) -> None:
    """The head of a file is read without looking at what follows."""
    path = tmp_path / "m.yaml"
    path.write_text("schema: x\ndocument: {title: no}\ntitle: yes\nname: n\nroles: [\n")

    assert head(str(path), ("name", "title")) == {"title": "yes", "name": "n"}
