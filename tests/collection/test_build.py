"""`make collection`: one file, which installs where there is no network."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.collection.ansible import COLLECTION, PLAYBOOK, find_ansible, settings

pytestmark = [
    pytest.mark.slow,
]
IN_FILE = {"LICENSE", "README.md", "CHANGELOG.md", "meta/runtime.yml", "playbooks/check.yml"}
IN_FILE |= {"plugins/action/host.py", "roles/gate/tasks/main.yml", "MANIFEST.json"}


def _run(home: Path, name: str, *words: str) -> str:
    program = find_ansible(name)
    assert program is not None
    environment = settings(home) | {"ANSIBLE_COLLECTIONS_PATH": str(home / "installed")}
    # Servers that do not exist: whoever asks them fails.
    environment["ANSIBLE_GALAXY_SERVER"] = "http://127.0.0.1:9/"
    done = subprocess.run(
        [program, *words], cwd=home, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_built_and_installed_from_the_file(tmp_path: Path) -> None:
    """Built, installed without any server, and then found by Ansible under its name."""
    _run(tmp_path, "ansible-galaxy", "collection", "build", str(COLLECTION))
    (built,) = tmp_path.glob("netprobe-preflight-*.tar.gz")
    with tarfile.open(built) as archive:
        names = set(archive.getnames())

    _run(tmp_path, "ansible-galaxy", "collection", "install", "--offline", str(built))
    listed = _run(tmp_path, "ansible-playbook", PLAYBOOK, "-i", "one,", "--list-tasks")

    assert names >= IN_FILE
    assert "Open listeners" in listed
    assert "netprobe.preflight.host" in _run(
        tmp_path, "ansible-doc", "--list", "netprobe.preflight"
    )
