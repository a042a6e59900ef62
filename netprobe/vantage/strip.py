"""Python source without what only readers and type checkers need, its lines where they were.

Comments, docstrings and the annotations of functions and variables go; the fields of a
``NamedTuple`` stay, because they are code. Tracebacks of the stripped source name the same lines.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator

# Where something is cut: first line, column in bytes, last line, column, and what takes its place.
Cut = tuple[int, int, int, int, bytes]


def strip(source: str) -> str:
    """The source without comments, docstrings and annotations; every line keeps its number."""
    lines = [line.encode("utf-8") for line in source.split("\n")]
    cuts = [*_comments(source, lines), *_syntax(ast.parse(source), lines)]
    for first, start, last, end, instead in sorted(cuts, reverse=True):
        kept = lines[first - 1][:start] + instead, lines[last - 1][end:]
        if first == last:
            lines[first - 1] = b"".join(kept)
        else:
            lines[first - 1 : last] = [kept[0], *[b""] * (last - first - 1), kept[1]]
    return "\n".join(line.rstrip().decode("utf-8") for line in lines)


def _comments(source: str, lines: list[bytes]) -> Iterator[Cut]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            start = len(token.line[:column].encode("utf-8"))
            yield line, start, line, len(lines[line - 1]), b""


def _syntax(tree: ast.Module, lines: list[bytes]) -> Iterator[Cut]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield from _docstring(node)
        if isinstance(node, ast.FunctionDef):
            yield from _signature(node, lines)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            # "name: int = 1" becomes "name = 1".
            yield _annotation(node.target, node.annotation)
        elif isinstance(node, ast.ClassDef) and not _is_record(node):
            yield from (_whole(field) for field in node.body if _is_bare(field))


def _docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> Iterator[Cut]:
    if ast.get_docstring(node, clean=False) is None:
        return
    # What has nothing but a docstring needs a statement in its place.
    yield _whole(node.body[0], b"" if len(node.body) > 1 or isinstance(node, ast.Module) else b"0")


def _signature(node: ast.FunctionDef, lines: list[bytes]) -> Iterator[Cut]:
    named = node.args
    for argument in (*named.args, named.vararg, *named.kwonlyargs, named.kwarg):
        if argument is not None and argument.annotation is not None:
            start = argument.col_offset + len(argument.arg.encode("utf-8"))
            end = argument.annotation
            assert end.end_lineno is not None
            assert end.end_col_offset is not None
            yield argument.lineno, start, end.end_lineno, end.end_col_offset, b""
    if node.returns is not None:
        line, column = node.returns.lineno, node.returns.col_offset
        arrow = lines[line - 1].rindex(b"->", 0, column)
        assert node.returns.end_lineno is not None
        assert node.returns.end_col_offset is not None
        yield line, arrow, node.returns.end_lineno, node.returns.end_col_offset, b""


def _is_record(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "NamedTuple" for base in node.bases)


def _is_bare(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign) and node.value is None


def _whole(node: ast.stmt, instead: bytes = b"") -> Cut:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, instead


def _annotation(target: ast.expr, annotation: ast.expr) -> Cut:
    assert target.end_lineno is not None
    assert target.end_col_offset is not None
    assert annotation.end_lineno is not None
    assert annotation.end_col_offset is not None
    # The value may stand in parentheses, which have no node of their own: it is not touched.
    return (
        target.end_lineno,
        target.end_col_offset,
        annotation.end_lineno,
        annotation.end_col_offset,
        b"",
    )
