"""The walls between the parts, as far as import-linter does not hold them."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "netprobe"
MODULES = sorted(PACKAGE.rglob("*.py"))
AGENT = sorted((PACKAGE / "agent").rglob("*.py"))

# Where a library may be imported, as folders or files below netprobe/.
HOMES = {
    "yaml": ("load",),
    "pydantic": ("load",),
    "pydantic_core": ("load",),
    "dns": ("protocols",),
    "httpx": ("protocols", "watch"),
    "httpcore": ("protocols",),
    "ssl": ("protocols",),
    "h2": ("protocols",),
    "cryptography": ("protocols",),
    "click": ("cli",),
    "rich": ("report", "cli"),
    "prometheus_client": ("watch",),
    "xlsxwriter": ("request",),
    # netprobe is under the MIT licence: Ansible is a program to it, and no library.
    "ansible": (),
    "ansible_collections": (),
    "ansible_runner": (),
}
# What the distribution's name is called when it is imported, where the two differ.
IMPORT_NAMES = {
    "pyyaml": "yaml",
    "dnspython": "dns",
    "prometheus-client": "prometheus_client",
}
SILENT_FOLDERS = ("agent", "probe", "protocols", "vantage")
HEAVY = {
    "prometheus_client",
    "xlsxwriter",
    "pydantic",
    "rich",
    "asyncio",
    "httpx",
    "httpcore",
    "h2",
    "dns",
    "yaml",
    "ssl",
}


# These ask about rights for all others.
RIGHTS = {"rights.py", "needs.py", "test_rights.py", "test_architecture.py"}


@pytest.mark.slow
def test_every_skip_says_what_it_needs() -> None:
    """A test is skipped by `needs` and `skip` of tests/needs.py only, and never for its uid."""
    asked = re.compile(r"pytest\.skip\b|\bskipif\b|importorskip|\bgete?uid\(\) *[!=]=")
    found = {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for folder in ("tests", "demo")
        for path in (ROOT / folder).rglob("*.py")
        if path.name not in RIGHTS
        for match in asked.finditer(path.read_text(encoding="utf-8"))
    }

    assert found == set()


class Definitions(NamedTuple):
    """What a file imports from elsewhere and what it defines, each with its line.

    ``functions`` are those without a decorator; ``aliases`` are names of types, each with what it
    stands for.
    """

    imports: list[tuple[str, int]]
    classes: list[tuple[str, int]]
    functions: list[tuple[str, int]]
    aliases: list[tuple[str, str]]


@functools.cache
def _text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def _definitions_of(path: Path) -> Definitions:
    found = Definitions([], [], [], [])
    for node in ast.walk(ast.parse(_text_of(path))):
        if isinstance(node, ast.Import):
            found.imports.extend((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.imports.append((node.module, node.lineno))
        elif isinstance(node, ast.ClassDef):
            found.classes.append((node.name, node.lineno))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list:
            found.functions.append((node.name, node.lineno))
        elif isinstance(node, ast.Assign) and _is_alias(node):
            found.aliases.append((ast.unparse(node.targets[0]), ast.unparse(node.value)))
    return found


def _is_alias(node: ast.Assign) -> bool:
    """Names of types are written like classes; a type variable means nothing by itself."""
    name, value = ast.unparse(node.targets[0]), ast.unparse(node.value)
    return bool(re.fullmatch("_?[A-Z]+[a-z]\\w*", name)) and not value.startswith("TypeVar(")


def _name(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def _part(path: Path) -> str:
    """The folder or file of netprobe/ that a module belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def test_the_agent_imports_the_standard_library_and_itself() -> None:
    """The agent runs where nothing is installed: no other module, not even one of netprobe's."""
    foreign = [
        f"{_name(path)}:{line} {name}"
        for path in AGENT
        for name, line in _definitions_of(path).imports
        if name.split(".")[0] not in sys.stdlib_module_names
    ]
    assert not foreign


def test_the_agent_parses_as_python_3_6() -> None:
    """EL8's platform-python is 3.6: no syntax newer than that."""
    for path in AGENT:
        ast.parse(_text_of(path), filename=str(path), feature_version=(3, 6))


def test_the_agent_has_no_type_comments() -> None:
    """Types are annotations: Python 3.6 has them, and a type checker reads nothing else."""
    assert not [_name(path) for path in AGENT if re.search(r"# type:(?! ignore)", _text_of(path))]


@pytest.mark.parametrize("folder", SILENT_FOLDERS)
def test_only_the_judge_says_blocked(folder: str) -> None:
    """What carries packets reports what happened; what it means is the judge's word."""
    found = [
        f"{_name(path)}:{number}"
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        for number, line in enumerate(_text_of(path).splitlines(), start=1)
        if re.search(r"blocked", line, re.IGNORECASE)
    ]
    assert not found


@pytest.mark.parametrize("library", HOMES)
def test_libraries_stay_in_their_homes(library: str) -> None:
    """One owner for each library, so that replacing one is a change in one folder."""
    strays = [
        f"{_name(path)}:{line}"
        for path in MODULES
        for name, line in _definitions_of(path).imports
        if name.split(".")[0] == library and _part(path) not in HOMES[library]
    ]
    assert not strays


def test_every_dependency_is_used_and_every_use_declared() -> None:
    """What the project asks users to install is what it imports, no more and no less."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [
        *project["dependencies"],
        *(w for name in extras if name != "dev" for w in extras[name]),
    ]
    named = [re.split(r"[<>=\[; ]", words)[0].lower() for words in wanted]
    declared = {IMPORT_NAMES.get(name, name) for name in named}
    used = {name.split(".")[0] for path in MODULES for name, _ in _definitions_of(path).imports}
    # pydantic requires exactly one version of pydantic_core: it is a part of it.
    assert declared == used - set(sys.stdlib_module_names) - {"netprobe", "pydantic_core"}


@pytest.mark.slow
def test_help_imports_nothing_heavy() -> None:
    """`netprobe --help` and completion answer at once: what is slow to import is not imported."""
    code = (
        "import sys\n"
        "from netprobe.cli.main import main\n"
        "sys.argv = ['netprobe', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert "Usage" in done.stdout
    assert not HEAVY & set(done.stderr.split())


def test_the_layers_are_exactly_those_of_the_design() -> None:
    """Every module and folder of netprobe/ stands in the layers that import-linter enforces."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    layers = next(c for c in tools["importlinter"]["contracts"] if c["type"] == "layers")
    named = {word.strip(" ()") for layer in layers["layers"] for word in layer.split("|")}
    there = {path.stem for path in PACKAGE.glob("[a-z]*.py")}
    there |= {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert layers["exhaustive"] is True
    assert there <= named


def test_no_file_names_the_index_package() -> None:
    """`netprobe` on the package index is somebody else's: nothing tells people to install it."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("netprobe/**/*.py")]
    wrong = re.compile(r"(pip|pipx|uv tool) install netprobe(?!-matrix)|uvx netprobe(?!-matrix)")
    found = [str(page) for page in pages if wrong.search(page.read_text(encoding="utf-8"))]
    assert not found


def test_a_class_name_occurs_once() -> None:
    """A stack trace or a search says at once which class is meant, and on which machine."""
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for name, _ in _definitions_of(path).classes:
            places.setdefault(name, []).append(_name(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_an_alias_has_one_meaning() -> None:
    """The name of a type stands for the same in all files, and for no class."""
    meanings: dict[str, set[str]] = {}
    for path in MODULES:
        defined = _definitions_of(path)
        for name, meaning in defined.aliases:
            meanings.setdefault(name, set()).add(meaning)
        for name, _ in defined.classes:
            meanings.setdefault(name, set()).add("a class")
    assert {name: found for name, found in meanings.items() if len(found) > 1} == {}


def test_a_private_function_has_a_verb_and_a_noun() -> None:
    """Its name says what it does without its caller; a property is a noun."""
    short = [
        f"{_name(path)}:{line} {name}"
        for path in MODULES
        for name, line in _definitions_of(path).functions
        if re.fullmatch("_[a-z0-9]+", name)
    ]
    assert short == []


def test_no_file_is_endless() -> None:
    """A file has one subject; only literal tables may be longer than 400 lines."""
    tables = ("judge/rows.py", "konnectivity/verdicts.py")
    lengths = {_name(path): _text_of(path).count("\n") for path in MODULES}
    assert {name for name, lines in lengths.items() if lines > 400} <= {*tables}
