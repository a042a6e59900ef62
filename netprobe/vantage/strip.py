"""Strips what only readers and type checkers need from Python source; lines keep their numbers.

Comments, docstrings and the annotations of functions and variables go, and so do imports that only
they needed; the fields of a ``NamedTuple`` stay, because they are code. A level of indentation is
one space.
Tracebacks of the stripped source name the same lines.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator

# Where something is cut: first line, column in bytes, last line, column, and the replacement.
Cut = tuple[int, int, int, int, bytes]
# Spaces a level.
INDENTATION = 4


def strip(source: str) -> str:
    """Give the source without comments, docstrings and annotations; lines keep their numbers."""
    lines = [line.encode("utf-8") for line in source.split("\n")]
    bare = _cut_all(lines, [*_cut_comments(source, lines), *_cut_syntax(ast.parse(source), lines)])
    lines = [line.encode("utf-8") for line in bare.split("\n")]
    return _narrow_indentation(_cut_all(lines, _cut_imports(ast.parse(bare))))


def _cut_all(lines: list[bytes], cuts: Iterable[Cut]) -> str:
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


def _cut_imports(tree: ast.Module) -> Iterator[Cut]:
    """Cut the names that nothing uses any more out of the module's ``from ... import``."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            kept = [one for one in node.names if (one.asname or one.name) in used]
            if not kept:
                yield _cut_whole(node)
            elif len(kept) < len(node.names):
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
        arrow = lines[line - 1].rindex(b"->", 0, column)
        _, _, last, end, _ = _cut_whole(node.returns)
        yield line, arrow, last, end, b""


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
