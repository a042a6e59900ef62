"""The examples of the format pages work as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from netprobe.load.accepted import AcceptanceFile, AcceptedFile
from netprobe.load.check import check_files
from netprobe.load.inventory.models import HostFile, InventoryFile
from netprobe.load.matrix.models import ChangeFile, MatrixFile, RequirementFile
from netprobe.load.matrix.probe_models import HttpFile, Probe
from netprobe.load.yaml.validation import FileModel

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("matrix-format.md", "inventory-format.md", "accepted-format.md")
EXAMPLES = [
    (page, text)
    for page in PAGES
    for text in re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
]


@pytest.mark.parametrize(("page", "text"), EXAMPLES)
def test_examples_load(page: str, text: str, tmp_path: Path) -> None:
    """Every YAML example of a page is a file without problems."""
    path = tmp_path / "site.yaml"
    path.write_text(text)

    assert check_files([str(path)]).endswith("no problems")


def test_there_are_examples() -> None:
    """The pages have examples at all."""
    assert [page for page, _ in EXAMPLES] == [PAGES[0], PAGES[0], PAGES[0], PAGES[1], PAGES[2]]


@pytest.mark.parametrize(
    ("page", "model"),
    [
        (PAGES[0], MatrixFile),
        (PAGES[0], RequirementFile),
        (PAGES[0], ChangeFile),
        (PAGES[0], HttpFile),
        (PAGES[1], InventoryFile),
        (PAGES[1], HostFile),
        (PAGES[2], AcceptedFile),
        (PAGES[2], AcceptanceFile),
    ],
)
def test_every_key_is_documented(page: str, model: type[FileModel]) -> None:
    """Each key that a file may have stands on the page of its format."""
    text = (DOCS / page).read_text()
    keys = [field.alias or name for name, field in model.model_fields.items()]

    assert [key for key in keys if f"`{key}`" not in text] == []


def test_every_probe_is_documented() -> None:
    """Each probe that a matrix may ask for stands on its page."""
    text = (DOCS / PAGES[0]).read_text()

    assert [probe for probe in get_args(Probe) if f"`{probe}`" not in text] == []
