"""The agent as it crosses the wire: its sources in one bundle, and the Python that loads it.

Strips what only readers and type checkers need from Python source; lines keep their numbers.

Comments, docstrings and the annotations of functions and variables go, and so do imports that only
they or type checkers needed; the fields of a ``NamedTuple`` stay, because they are code. A level of
indentation is one space. Tracebacks of the stripped source name the same lines.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import os
import re
import sys
import tempfile
import tokenize
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from importlib.util import cache_from_source
from pathlib import Path

# Where something is cut: first line, column in bytes, last line, column, and the replacement.
Cut = tuple[int, int, int, int, bytes]
# Spaces a level.
INDENTATION = 4

# One line, because a newline inside quotes is an error in csh; and no exclamation mark, backslash,
# double quote, dollar or backtick, because it crosses sh inside double quotes and the login shell,
# whatever that is. A buffer of one byte leaves what follows the bundle unread. The alarm ends a
# bootstrap whose bundle never comes; later the agent's dead man's switch takes over. What
# every agent needs is imported while the bundle is on its way. Garbage is not looked for before
# ``main`` says how often: imports make none.
_BOOTSTRAP = (
    "import gc;gc.disable();import sys,io,zlib,signal;"
    "signal.alarm(60);"
    "print('NETPROBE-READY',flush=True);"
    "import json,socket;"
    "f=io.BufferedReader(io.FileIO(0,closefd=False),1);"
    "p=zlib.decompress(f.read(int(f.readline()))).decode().split(chr(0));"
    "m=dict(zip(p[::2],p[1::2]));"
    "g={'__name__':'netprobe_agent.boot'};"
    "exec(compile(m['boot'],'netprobe_agent/boot.py','exec'),g);"
    "g['boot'](m,'%s')"
)
BOOTSTRAP = _BOOTSTRAP % "main"
# The same for a run that an engine drives: behind the bundle stands the host's script.
ENGINE_BOOTSTRAP = _BOOTSTRAP % "batch.engine"

# Only mypy needs ``typing``, whose import would be a tenth of the agent's start.
_TYPING = ("\nfrom typing import ", "\nfrom netprobe_agent.untyped import ")


# What only an agent without a live coordinator needs.
_BATCH = ("batch.", "wire.batch", "wire.questions", "wire.result_lines")


def strip(source: str) -> str:
    """Give the source without comments, docstrings and annotations; lines keep their numbers."""
    lines = [line.encode("utf-8") for line in source.split("\n")]
    bare = _cut_all(source, [*_cut_comments(source, lines), *_cut_syntax(ast.parse(source), lines)])
    return _narrow_indentation(_cut_all(bare, _cut_imports(ast.parse(bare))))


def strip_all(texts: Mapping[str, str]) -> dict[str, str]:
    """Give all modules without these, and without names of types that only annotations used."""
    stripped = {name: strip(text) for name, text in texts.items()}
    words = Counter(word for text in stripped.values() for word in re.findall(r"\w+", text))
    for name, text in stripped.items():
        if cuts := list(_cut_types(ast.parse(text), words)):
            bare = _cut_all(text, cuts)
            stripped[name] = _cut_all(bare, _cut_imports(ast.parse(bare)))
    return stripped


def _cut_all(source: str, cuts: Iterable[Cut]) -> str:
    lines = [line.encode("utf-8") for line in source.split("\n")]
    for first, start, last, end, instead in sorted(cuts, reverse=True):
        kept = lines[first - 1][:start] + instead, lines[last - 1][end:]
        if first == last:
            lines[first - 1] = b"".join(kept)
        else:
            lines[first - 1 : last] = [kept[0], *[b""] * (last - first - 1), kept[1]]
    return "\n".join(line.rstrip().decode("utf-8") for line in lines)


def _narrow_indentation(source: str) -> str:
    """Give the source with one space a level; in strings of several lines nothing changes."""
    told = {
        number
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.STRING
        for number in range(token.start[0] + 1, token.end[0] + 1)
    }
    lines = source.split("\n")
    for number, line in enumerate(lines, 1):
        if number not in told:
            text = line.lstrip(" ")
            lines[number - 1] = " " * -(-(len(line) - len(text)) // INDENTATION) + text
    return "\n".join(lines)


def _cut_comments(source: str, lines: list[bytes]) -> Iterator[Cut]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            start = len(token.line[:column].encode("utf-8"))
            yield line, start, line, len(lines[line - 1]), b""


def _cut_syntax(tree: ast.Module, lines: list[bytes]) -> Iterator[Cut]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield from _cut_docstring(node)
        if isinstance(node, ast.FunctionDef):
            yield from _cut_signature(node, lines)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            # "name: int = 1" becomes "name = 1"; the value may stand in parentheses.
            yield _cut_between_ends(node.target, node.annotation)
        elif isinstance(node, ast.ClassDef) and not _is_record(node):
            bare = (n for n in node.body if isinstance(n, ast.AnnAssign) and n.value is None)
            yield from map(_cut_whole, bare)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield _cut_whole(node)


def _cut_types(tree: ast.Module, words: Mapping[str, int]) -> Iterator[Cut]:
    """Cut names of types, such as ``Way = Tuple[int, int]``, that stand nowhere else."""
    imports = (node for node in tree.body if isinstance(node, ast.ImportFrom))
    types = {one.name for node in imports if node.module == "typing" for one in node.names}
    for node in tree.body:
        match node:
            case ast.Assign([ast.Name(name)], ast.Subscript(ast.Name(kind))):
                if kind in types and words[name] == 1:
                    yield _cut_whole(node)


def _cut_imports(tree: ast.Module) -> Iterator[Cut]:
    """Cut the names that nothing uses any more out of the module's ``from ... import``; the others
    stand on one line."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            kept = [one for one in node.names if (one.asname or one.name) in used]
            if not kept:
                yield _cut_whole(node)
            else:
                words = ", ".join(map(ast.unparse, kept)).encode("utf-8")
                yield *_cut_between(node.names[0], node.names[-1]), words


def _cut_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> Iterator[Cut]:
    if ast.get_docstring(node, clean=False) is None:
        return
    # A body that is nothing but a docstring needs a statement in its place.
    yield _cut_whole(
        node.body[0], b"" if len(node.body) > 1 or isinstance(node, ast.Module) else b"0"
    )


def _cut_signature(node: ast.FunctionDef, lines: list[bytes]) -> Iterator[Cut]:
    named = node.args
    for argument in (*named.args, named.vararg, *named.kwonlyargs, named.kwarg):
        if argument is not None and argument.annotation is not None:
            start = argument.col_offset + len(argument.arg.encode("utf-8"))
            _, _, last, end, _ = _cut_whole(argument.annotation)
            yield argument.lineno, start, last, end, b""
    if node.returns is not None:
        line, column = node.returns.lineno, node.returns.col_offset
        bracket = lines[line - 1].rindex(b")", 0, column)
        _, _, last, end, _ = _cut_whole(node.returns)
        yield line, bracket + 1, last, end, b""


def _is_record(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "NamedTuple" for base in node.bases)


def _cut_between(first: ast.alias, last: ast.alias) -> tuple[int, int, int, int]:
    assert last.end_lineno is not None
    assert last.end_col_offset is not None
    return first.lineno, first.col_offset, last.end_lineno, last.end_col_offset


def _cut_whole(node: ast.stmt | ast.expr, instead: bytes = b"") -> Cut:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, instead


def _cut_between_ends(left: ast.expr, right: ast.expr) -> Cut:
    _, _, first, start, _ = _cut_whole(left)
    _, _, last, end, _ = _cut_whole(right)
    return first, start, last, end, b""


def sources(*, batch: bool = False) -> dict[str, str]:
    """Read every module of the agent, sorted by its dotted name; a package's own is ``__init__``.

    ``batch``: those too that carry out scripts. This works from an installed wheel and from a zip
    file too.
    """
    stripped = strip_all(_read_texts(batch))
    return {name: text.replace(*_TYPING) for name, text in stripped.items()}


def _read_texts(batch: bool) -> dict[str, str]:
    read = _read_modules(resources.files("netprobe.agent"), "")
    return dict(sorted(one for one in read if batch or not one[0].startswith(_BATCH)))


def _read_modules(folder: Traversable, package: str) -> Iterator[tuple[str, str]]:
    for item in folder.iterdir():
        if item.is_dir() and item.name != "__pycache__":
            yield from _read_modules(item, f"{package}{item.name}.")
        elif item.name.endswith(".py"):
            yield package + item.name.removesuffix(".py"), item.read_text(encoding="utf-8")


@cache
def bundle(*, batch: bool = False) -> bytes:
    """Give what the bootstrap reads.

    Stripping takes a third of a second: a wheel has the bundles, and a checkout keeps them beside
    the bytecode of this module.
    """
    with contextlib.suppress(OSError):
        return resources.files(__package__).joinpath(name_bundle(batch=batch)).read_bytes()
    path = _find_cache(batch)
    with contextlib.suppress(OSError):
        if path is not None:
            return path.read_bytes()
    made = make_bundle(batch=batch)
    if path is not None:
        _keep_bundle(path, made)
    return made


def name_bundle(*, batch: bool) -> str:
    """Name the file beside this module that a wheel has."""
    return f"{'batch' if batch else 'agent'}.bundle"


def make_bundle(*, batch: bool = False) -> bytes:
    """Pack what the bootstrap reads: the bundle's length as a line, then the bundle.

    Names and sources by turns with a NUL between them, which is read faster than JSON.
    """
    parts = [part for module in sources(batch=batch).items() for part in module]
    packed = zlib.compress("\0".join(parts).encode("utf-8"), 9)
    return b"%d\n%s" % (len(packed), packed)


def _find_cache(batch: bool) -> Path | None:
    """Find where the bundle of these sources is kept, as Python keeps bytecode; None: nowhere."""
    if sys.dont_write_bytecode:
        return None
    try:
        beside = Path(cache_from_source(__file__))
    except NotImplementedError:
        return None  # this Python keeps no bytecode
    own = Path(strip.__code__.co_filename), Path(__file__)
    with contextlib.suppress(OSError):
        known = [*_read_texts(batch).items(), *((one.name, one.read_text()) for one in own)]
        digest = hashlib.sha256("\0".join(part for one in known for part in one).encode("utf-8"))
        kind = "batch" if batch else "agent"
        return beside.with_name(f"{kind}-{digest.hexdigest()[:32]}.bundle")
    return None  # in a zip file


def _keep_bundle(path: Path, made: bytes) -> None:
    """Write the bundle whole or not at all, and remove those of other sources."""
    with contextlib.suppress(OSError):
        for old in path.parent.glob(f"{path.name.partition('-')[0]}-*.bundle"):
            old.unlink()
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(made)
        os.replace(file.name, path)
