"""The collection for Ansible is a distribution of its own, under Ansible's licence."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collection.ansible import COLLECTION

GPL = "SPDX-License-Identifier: GPL-3.0-or-later"
PLUGINS = sorted(COLLECTION.rglob("*.py"))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""


@pytest.mark.parametrize("path", PLUGINS, ids=lambda path: path.name)
def test_what_imports_ansible_has_its_licence(path: Path) -> None:
    """Each of its files says that it is under the GPL; none imports netprobe."""
    assert GPL in path.read_text(encoding="utf-8")
    assert not [name for name in _imports(path) if name.split(".")[0] == "netprobe"]


def test_the_collection_says_its_licence_and_its_ansible() -> None:
    """Its licence is a file of its own, and it names the oldest release that it was tried with."""
    assert "GNU GENERAL PUBLIC LICENSE" in (COLLECTION / "LICENSE").read_text(encoding="utf-8")
    assert "license_file: LICENSE" in (COLLECTION / "galaxy.yml").read_text(encoding="utf-8")
    runtime = (COLLECTION / "meta" / "runtime.yml").read_text(encoding="utf-8")
    assert re.search(r'requires_ansible: ">=2\.14\.0"', runtime)
