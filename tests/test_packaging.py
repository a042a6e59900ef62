"""What is built is complete: a wheel that finds its matrices, an sdist that can be tested."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from netprobe.report.run.html.document import SCRIPTS
from netprobe.vantage.pack import bundle, name_bundle

ROOT = Path(__file__).parents[1]
MATRICES = {path.name for path in (ROOT / "matrices").glob("*.yaml")}
IN_SDIST = {"Makefile", "README.md", "CHANGELOG.md", "LICENSE", "requirements.lock", ".ci/run"}
IN_SDIST |= {
    "ansible_collections/netprobe/preflight/galaxy.yml",
    "matrices/dce.yaml",
    "tests/lab/netlab.py",
    "contrib/systemd/netprobe-watch.service",
    "demo/run.py",
    "docs/pipeline.md",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--sdist"]
    done = subprocess.run(
        [*command, "--outdir", folder, ROOT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_the_wheel_lists_its_matrices_where_no_checkout_is(built: Path, tmp_path: Path) -> None:
    """Installed from the wheel alone, netprobe finds every bundled matrix, and agents to send."""
    (wheel,) = built.glob("netprobe_matrix-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "netprobe", "matrix", "list"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
        check=False,
    )

    assert {name.split("/")[-1] for name in names if "/_matrices/" in name} == MATRICES
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert {f"{name}.yaml" for name in listed} == MATRICES
    others = ("tests/", "demo/", "drift/", "ansible_collections/")
    assert not [name for name in names if name.startswith(others)]
    assert {f"netprobe/report/run/html/{one}" for one in (*SCRIPTS, "page.css")} <= set(names)
    for batch in (False, True):
        packed = tmp_path / "netprobe" / "vantage" / name_bundle(batch=batch)
        assert packed.read_bytes() == bundle(batch=batch)


@pytest.mark.slow
def test_the_sdist_has_all_that_testing_needs(built: Path) -> None:
    """Whoever has only the sdist can run the demo and the tests."""
    (sdist,) = built.glob("netprobe_matrix-*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert not IN_SDIST - names
    assert not [name for name in names if name.startswith((".venv", ".git/", "dist/"))]


def test_requirements_are_pinned_by_hash_and_name_no_place() -> None:
    """Every requirement has a version and hashes; where to fetch them is each user's own matter."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=[a-zA-Z0-9])", text.split("\n", 1)[1])
    loose = [
        entry.split("\n")[0] for entry in entries if "==" not in entry or "sha256:" not in entry
    ]

    assert not loose
    assert not re.search(r"://|--index|--find-links|file:", text)
