"""What is stripped from the agent before it travels, and what stays."""

from __future__ import annotations

import ast
from importlib import resources
from pathlib import Path

import pytest

from netprobe.vantage.pack import bundle, strip, strip_all

AGENT = Path(str(resources.files("netprobe.agent")))
MODULES = sorted(AGENT.rglob("*.py"))

SOURCE = '''"""Module."""
import os  # why
from typing import TYPE_CHECKING, Any, Dict, List, Optional
from a import (
    b,
    c as d,
)
if TYPE_CHECKING:
    from e import Plain

# A comment.


class Record(NamedTuple):
    """A record."""

    first: int
    second: Optional[str]


class Plain:
    """A class."""

    field: int
    value: Dict[str, int] = {}

    def method(self, one: int, *rest: str, key: "Plain" = None, **more: Any) -> List[int]:
        """Docstring
        of two lines."""
        found: Optional[int] = (
            one if one else None
        )
        text: str = "# no comment: int = 1"
        return [found, "é -> # ü", d]

    def empty(self) -> None:
        """Nothing to do."""
'''

STRIPPED = """
import os
from typing import Optional
from a import (
 c as d
,
)






class Record(NamedTuple):


 first: int
 second: Optional[str]


class Plain:



 value = {}

 def method(self, one, *rest, key = None, **more):


  found = (
   one if one else None
  )
  text = "# no comment: int = 1"
  return [found, "é -> # ü", d]

 def empty(self):
  0
"""


def test_comments_docstrings_and_annotations_go() -> None:
    """So do imports that only annotations and type checkers needed; fields of records stay, and no
    line moves."""
    assert strip(SOURCE) == STRIPPED


def test_names_of_types_go_that_only_annotations_used() -> None:
    """So do the imports that only they needed; what another module names stays, and no line."""
    types = "from typing import Dict, List, NamedTuple\nWay = List[int]\nKept = Dict[int, str]\n"
    code = "def find(way: Way) -> Kept:\n    return {}\n"
    other = "from one import Kept\nclass Told(NamedTuple):\n    first: Kept\n"
    stripped = strip_all({"one": types + code, "other": other})
    assert stripped == {
        "one": "from typing import Dict\n\nKept = Dict[int, str]\ndef find(way):\n return {}\n",
        "other": "from one import Kept\nclass Told(NamedTuple):\n first: Kept\n",
    }


class _Bare(ast.NodeTransformer):
    """The syntax tree without docstrings and annotations, made in another way than ``strip``."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        return self._bare_body(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        record = any(isinstance(base, ast.Name) and base.id == "NamedTuple" for base in node.bases)
        fields = [one for one in node.body if record and isinstance(one, ast.AnnAssign)]
        node.body = [one for one in node.body if one not in fields]
        self._bare_body(node)
        if fields:
            node.body = [*fields, *(one for one in node.body if not isinstance(one, ast.Pass))]
        return node

    def visit_Module(self, node: ast.Module) -> ast.AST:
        self._bare_body(node)
        used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        for one in node.body:
            if isinstance(one, ast.ImportFrom):
                one.names = [name for name in one.names if (name.asname or name.name) in used]
        node.body = [one for one in node.body if getattr(one, "names", True)]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        return ast.Assign([node.target], node.value, lineno=node.lineno)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        is_of_types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if is_of_types else self.generic_visit(node)

    def _bare_body(self, node: ast.Module | ast.ClassDef | ast.FunctionDef) -> ast.AST:
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:]
        self.generic_visit(node)
        if not isinstance(node, ast.Module):
            node.body = node.body or [ast.Pass()]
        return node


class _Zeros(ast.NodeTransformer):
    """A lone ``0`` is what ``strip`` leaves of a body that was a docstring."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        zero = isinstance(node.value, ast.Constant) and node.value.value == 0
        return ast.Pass() if zero else node


@pytest.mark.slow
def test_every_module_of_the_agent_keeps_its_code() -> None:
    """The stripped module has as many lines, and the same code."""
    for path in MODULES:
        source = path.read_text(encoding="utf-8")
        stripped = strip(source)
        assert stripped.count("\n") == source.count("\n"), path
        bare = ast.dump(_Bare().visit(ast.parse(source)))
        assert ast.dump(_Zeros().visit(ast.parse(stripped))) == bare, path


def test_the_bundle_is_small() -> None:
    """What every host receives is at most 74 KiB: 4 of them make tunnels without ``ip``,
    1 hands connections over, 3 hear and ask segments, and 2 take samples of ways."""
    assert len(bundle()) <= 74 * 1024
