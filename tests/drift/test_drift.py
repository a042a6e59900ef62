"""A document that has changed is found, row by row, in every markup; another order is no change."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import drift.baseline
from drift.__main__ import plain_table, report
from drift.compare import Change, compare
from drift.formats import read_tables
from drift.tables import hash_of, kept_table
from tests.drift.documents import MARKUPS, Tables, shop

ROOT = Path(__file__).parents[2]


def add(tables: Tables) -> None:
    tables.first.append(["TCP", "9345", "agents", "servers", "join"])


def remove(tables: Tables) -> None:
    del tables.first[0]


def port(tables: Tables) -> None:
    tables.first[0][1] = "6444"


def narrower_range(tables: Tables) -> None:
    tables.first[2][1] = "2379"


def protocol(tables: Tables) -> None:
    tables.first[1][0] = "TCP"


def source(tables: Tables) -> None:
    tables.first[0][2] = "all nodes"


def direction(tables: Tables) -> None:
    tables.first[0][2:4] = ["servers", "agents"]


def condition(tables: Tables) -> None:
    tables.first[1][4] = "only with VXLAN or Geneve"


def no_condition(tables: Tables) -> None:
    tables.first[1][4] = ""


def another_table(tables: Tables) -> None:
    tables.first.append(tables.second.pop())


def title(tables: Tables) -> None:
    tables.titles = ("Between nodes", "From anywhere")


# What is changed, the kind of the change, what it is about (in a document whose cells are plain).
CHANGES: list[tuple[Callable[[Tables], None], list[str], str]] = [
    (add, ["added"], ""),
    (remove, ["removed"], ""),
    (port, ["changed"], "port (Port): '6443' → '6444'"),
    (narrower_range, ["changed"], "port (Port): '2379-2380' → '2379'"),
    (protocol, ["changed"], "protocol (Protocol): 'UDP' → 'TCP'"),
    (source, ["changed"], "direction (Source): 'agents' → 'all nodes'"),
    (direction, ["changed"], "direction (Destination): 'servers' → 'agents'"),
    (condition, ["changed"], "condition (Notes): 'only with VXLAN' → 'only with VXLAN or Geneve'"),
    (no_condition, ["changed"], "condition (Notes): 'only with VXLAN' → ''"),
    (another_table, ["added", "removed"], ""),
    (title, ["changed"], "From anywhere'"),
]


def changes_of(folder: Path, markup: str, change: Callable[[Tables], None]) -> list[Change]:
    """What is found after a change of the document in this markup."""
    write, path = MARKUPS[markup], folder / markup
    path.write_text(write(shop()), encoding="utf-8")
    old = read_tables(path)
    changed = shop()
    change(changed)
    path.write_text(write(changed), encoding="utf-8")
    new = read_tables(path)
    found = compare(old, new)
    assert bool(found) == (hash_of(old) != hash_of(new))
    return found


def test_every_markup_gives_the_same_tables(tmp_path: Path) -> None:
    """Titles, columns and cells are those of the document, without the table of sizes."""
    for markup, write in MARKUPS.items():
        path = tmp_path / markup
        path.write_text(write(shop()), encoding="utf-8")
        first, second = read_tables(path)
        rows = [[cell.replace("`", "") for cell in row] for row in shop().first]
        assert [list(row[:5]) for row in first.rows] == rows, markup
        assert first.heading == "Between nodes", markup
        assert "From outside" in second.heading, markup
        assert second.rows[0][:4] == ("TCP", "443", "clients", "servers"), markup


@pytest.mark.slow
def test_each_kind_of_change_is_found(tmp_path: Path) -> None:
    """In every markup: its kind, and which cell is another one now."""
    for markup in MARKUPS:
        for change, kinds, words in CHANGES:
            found = changes_of(tmp_path, markup, change)
            name = (markup, change.__name__, found)
            assert sorted({one.kind for one in found}) == kinds, name
            assert len(found) == len(kinds), name
            assert any(words in one.what for one in found), name


def test_a_condition_around_a_row_is_one(tmp_path: Path) -> None:
    """JSX and AsciiDoc say it in the markup, not in a cell."""
    found = changes_of(tmp_path, "shop.mdx", condition)[0].what
    assert "condition ((condition)): \"props.mode === 'only with VXLAN'" in found

    old, new = tmp_path / "old.adoc", tmp_path / "new.adoc"
    old.write_text("|===\n|Port |Use\n|80 |web\nifdef::tls[]\n|443 |web\nendif::[]\n|===\n")
    new.write_text("|===\n|Port |Use\n|80 |web\nifdef::edge[]\n|443 |web\nendif::[]\n|===\n")
    (one,) = compare(read_tables(old), read_tables(new))
    assert one.what == "condition ((condition)): 'ifdef tls' → 'ifdef edge'"


def test_tabs_are_a_part_of_the_title(tmp_path: Path) -> None:
    """Docusaurus, MkDocs and Antora have one table in each tab: the tab is its condition."""
    pipes = "| Port | Use |\n|---|---|\n| 179 | BGP |\n"
    indented = "".join(f"    {line}\n" for line in pipes.splitlines())
    texts = {
        "a.mdx": f'## CNI\n<Tabs>\n<TabItem value="Calico">\n\n{pipes}\n</TabItem>\n</Tabs>\n',
        "b.md": f'## CNI\n=== "Calico"\n{indented}\nEnd.\n',
        "c.adoc": "== CNI\n[tabs]\n====\nCalico::\n+\n|===\n|Port |Use\n|179 |BGP\n|===\n====\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        (table,) = read_tables(tmp_path / name)
        assert (table.heading, table.rows) == ("CNI, Calico", (("179", "BGP"),)), name


def test_columns_of_asciidoc(tmp_path: Path) -> None:
    """A number alone says how many there are, as a list and a repetition do; or the first line."""
    heads = ['[cols="3",options="header"]', "[cols=3*]", '[cols="1,2a,^2"]', '[cols="2*,1"]', ""]
    for head in heads:
        path = tmp_path / "a.adoc"
        path.write_text(f"{head}\n|===\n|Port |Protocol |Use\n\n|80\n|TCP\n|web\n|===\n")
        (table,) = read_tables(path)
        assert table.columns == ("Port", "Protocol", "Use"), head
        assert table.rows == (("80", "TCP", "web"),), head


def test_order_and_markup_are_no_change(tmp_path: Path) -> None:
    """Rows in another order, wider cells, bold words and other dashes say the same."""

    def reorder(tables: Tables) -> None:
        tables.first.reverse()

    for markup in MARKUPS:
        assert changes_of(tmp_path, markup, reorder) == [], markup

    path = tmp_path / "shop.md"
    text = MARKUPS["shop.md"](shop())
    path.write_text(text, encoding="utf-8")
    before = hash_of(read_tables(path))
    text = text.replace("| 6443 |", "|   **6443**  |").replace("2379-2380", "2379–2380")
    text = text.replace("| API |", "| [API](./api.md) |").replace("`etcd`", "etcd")
    path.write_text(text, encoding="utf-8")
    assert hash_of(read_tables(path)) == before


def test_long_cells_are_kept_as_hashes(tmp_path: Path) -> None:
    """A document's sentences are not kept, and a change of them is found all the same."""
    sentence = "When the provisioning network is used, the nodes reach the server of it there."
    path = tmp_path / "shop.md"
    path.write_text(f"| Port | Use |\n|---|---|\n| 69 | {sentence} |\n")
    (old,) = read_tables(path)
    kept = kept_table(old)
    assert "network" not in str(kept)
    assert hash_of([kept]) == hash_of([old])

    path.write_text(f"| Port | Use |\n|---|---|\n| 69 | {sentence} Always. |\n")
    (one,) = compare([kept], read_tables(path))
    assert one.kind == "changed"
    assert one.what.endswith("Always.'")


@pytest.fixture
def kept_shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of a document whose rows are kept; the folder of checkouts."""
    file = tmp_path / "docs" / "owner" / "shop" / "a" / "shop.md"
    file.parent.mkdir(parents=True)
    file.write_text(MARKUPS["shop.md"](shop()), encoding="utf-8")
    tables = read_tables(file)
    plain = [plain_table("a/shop.md", table) for table in map(kept_table, tables)]
    plain[0]["rows"][0]["requirements"] = ["api"]  # type: ignore[index]
    source = {"repository": "owner/shop", "path": "a/shop.md", "commit": "1234567"}
    head = {"document": {"sources": [{**source, "hash": hash_of(tables)}]}}
    for folder, data in (("rows", {"tables": plain}), ("matrices", head)):
        (tmp_path / folder).mkdir()
        text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
        (tmp_path / folder / "shop.yaml").write_text(text, encoding="utf-8")
        monkeypatch.setattr(drift.baseline, folder.upper(), tmp_path / folder)
    return tmp_path / "docs"


def test_the_report(kept_shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It names the row, the cell, and the requirement that the row became; the status tells."""
    for read in (drift.baseline.read_baseline, drift.baseline.sources_of):
        read.cache_clear()
    assert report(kept_shop, ["shop"]) == 0
    assert "as it was" in capsys.readouterr().out

    changed = shop()
    port(changed)
    (kept_shop / "owner/shop/a/shop.md").write_text(MARKUPS["shop.md"](changed), encoding="utf-8")
    assert report(kept_shop, ["shop"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "shop: owner/shop a/shop.md: 1 change",
        "  changed: Between nodes: TCP | 6443 | agents | servers | API: "
        "port (Port): '6443' → '6444' (requirement api)",
        "documents read: 1, changed: 1",
    ]


@pytest.mark.slow
def test_documents_that_are_not_there(tmp_path: Path) -> None:
    """Each is named, and nothing read is no success."""
    command = [sys.executable, "-m", "drift", str(tmp_path), "rke2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert done.stdout.splitlines()[0].endswith("docs/install/requirements.md: not there")


def test_a_run_imports_nothing_of_it() -> None:
    """Neither the package nor a parser of documents is a part of netprobe."""
    for path in (ROOT / "netprobe").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not any(f"import {name}" in text for name in ("drift", "docutils", "markdown_it"))
        assert "from drift" not in text
