"""What a release installs, in roots that have nothing else: commands, pages, removal."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from netprobe import __version__
from release.base import base_folder
from release.dist import make_wheelhouse
from release.image import make_image
from release.onefile import fingerprint
from release.packages import make_packages
from release.places import ROOT, ReleaseError, own_arch, source_date
from tests.needs import skip
from tests.release.roots import JumpHost, onefile_of
from tests.vantage.runtime.support import has_busybox

pytestmark = [pytest.mark.slow, pytest.mark.full]
VERSION = f"netprobe {__version__}\n"
PAGES = ("netprobe.1", "netprobe-run.1", "netprobe-matrix-show.1")
COMPLETE = {"_NETPROBE_COMPLETE": "bash_complete", "COMP_WORDS": "netprobe run", "COMP_CWORD": "1"}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The packages of this checkout, by what reads them."""
    onefile_of(own_arch())
    try:
        made = make_packages(own_arch(), tmp_path_factory.mktemp("packages"))
    except ReleaseError as error:
        skip(f"no packages can be built: {error}", "nfpm")
    return {path.suffix[1:]: path for path in made}


@pytest.fixture
def host() -> Iterator[JumpHost]:
    """A root with busybox alone."""
    if not has_busybox():
        skip("no static busybox", "Debian's busybox-static")
    made = JumpHost(b"")
    yield made
    made.close()


def files_of(root: Path) -> set[str]:
    """Everything below usr and var, but what package managers keep for themselves."""
    kept = ("var/lib/dpkg", "var/lib/rpm", "var/log", "var/cache", "var/lib/apt")
    names = {
        str(one.relative_to(root)) for top in ("usr", "var") for one in (root / top).rglob("*")
    }
    return {name for name in names if not name.startswith(kept)}


def kept_files() -> dict[str, tuple[int, int]]:
    """Size and time of all that builds share."""
    folder = base_folder(own_arch())
    found = {str(one): one.stat() for one in folder.rglob("*") if one.is_file()}
    return {name: (one.st_size, one.st_mtime_ns) for name, one in found.items()}


def check_installed(host: JumpHost, zsh: str) -> None:
    """The command runs, and brings a Python for hosts; pages and completions are where they are
    looked for, and no file is another user's to write to."""
    assert host.run("--version", file="/usr/bin/netprobe").stdout == VERSION
    assert "/usr/lib/netprobe/share" in host.run("runtime", "list", file="/usr/bin/netprobe").stdout
    plugin = "/usr/bin/kubectl-netprobe"
    assert host.run("--version", file=plugin).stdout == VERSION
    assert "cluster clean [OPTIONS]" in host.run("clean", "--help", file=plugin).stdout
    env = {"PATH": "/usr/bin:/bin", "HOME": "/root", **COMPLETE}
    offered = host.run(env=env, file="/usr/bin/netprobe").stdout.split()
    assert {"plain,run", "plain,runtime"} <= set(offered)
    for name in PAGES:
        page = gzip.decompress((host.folder / f"usr/share/man/man1/{name}.gz").read_bytes())
        assert b".SH SYNOPSIS" in page
        assert b"\b" not in page
    share = host.folder / "usr/share"
    fish = "fish/vendor_completions.d/netprobe.fish"
    scripts = ["bash-completion/completions/netprobe", fish, zsh]
    for name in scripts:
        assert "_NETPROBE_COMPLETE" in (share / name).read_text()
    for name in ("prometheus/netprobe.rules.yaml", "grafana/netprobe.json"):
        assert (share / "netprobe" / name).read_bytes() == (ROOT / "contrib" / name).read_bytes()
    assert (host.folder / "usr/lib/systemd/system/netprobe-watch.service").is_file()
    assert "| libc6 |" in (share / "doc/netprobe/COMPONENTS.md").read_text()
    files = [host.folder / name for name in files_of(host.folder)]
    loose = [one for one in files if not one.is_symlink() and one.stat().st_mode & 0o022]
    assert loose == []


def test_the_package_for_debian(host: JumpHost, packages: dict[str, Path]) -> None:
    """apt installs it into an empty root, without other packages, and removes all of it again."""
    apt = prepare_apt(host.folder)
    before = files_of(host.folder)
    subprocess.run([*apt, "install", packages["deb"]], check=True, capture_output=True)
    check_installed(host, "zsh/vendor-completions/_netprobe")
    subprocess.run([*apt, "purge", "netprobe"], check=True, capture_output=True)
    assert files_of(host.folder) == before


def prepare_apt(root: Path) -> list[str]:
    """Make a root one in which nothing was installed yet; apt for it alone, without a source."""
    for name in ("dpkg/info", "dpkg/updates", "dpkg/triggers", "apt/lists/partial"):
        (root / "var/lib" / name).mkdir(parents=True)
    (root / "var/cache/apt/archives/partial").mkdir(parents=True)
    (root / "var/log/apt").mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    apt = [shutil.which("apt-get") or "apt-get", "-q", "-y"]
    for setting in (
        f"Dir={root}",
        f"Dir::State::status={root}/var/lib/dpkg/status",
        "Dir::Bin::Methods=/usr/lib/apt/methods",
        f"Dir::Bin::dpkg={shutil.which('dpkg')}",
        f"DPkg::Options::=--root={root}",
        "DPkg::Options::=--force-not-root",
        "DPkg::Options::=--log=/dev/null",
        "APT::Sandbox::User=root",
    ):
        apt += ["-o", setting]
    return apt


@pytest.mark.needs("rpm")
def test_the_package_for_rpm(host: JumpHost, packages: dict[str, Path]) -> None:
    """rpm installs it into an empty root, without other packages, and removes all of it again."""
    # What belongs to no package of ours: "filesystem" has it.
    for name in ("bin", "lib/systemd/system", "share/doc", "share/man/man1"):
        (host.folder / "usr" / name).mkdir(parents=True)
    before = files_of(host.folder)
    rpm = ["rpm", f"--root={host.folder}", "--dbpath=/var/lib/rpm"]
    subprocess.run([*rpm, "-i", packages["rpm"]], check=True, capture_output=True)
    check_installed(host, "zsh/site-functions/_netprobe")
    subprocess.run([*rpm, "-e", "netprobe"], check=True, capture_output=True)
    assert files_of(host.folder) == before


def test_the_image(tmp_path: Path) -> None:
    """Every blob is what its name says. In its root netprobe, ssh, a shell and Python run. What is
    kept for the next build stays as it was."""
    before = kept_files()
    path = make_image(own_arch(), tmp_path)
    assert kept_files() == before
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path / "oci", filter="data")
    blobs = tmp_path / "oci/blobs/sha256"
    index = json.loads((tmp_path / "oci/index.json").read_text())
    manifest = json.loads((blobs / index["manifests"][0]["digest"][7:]).read_text())
    config = json.loads((blobs / manifest["config"]["digest"][7:]).read_text())
    root = tmp_path / "root"
    with tarfile.open(blobs / manifest["layers"][0]["digest"][7:]) as layer:
        layer.extractall(root, filter=lambda member, _: member)
    for blob in blobs.iterdir():
        done = subprocess.run(["sha256sum", blob], capture_output=True, text=True, check=True)
        assert done.stdout.split()[0] == blob.name
    # Whoever runs an image brings /dev.
    (root / "dev/null").touch()
    env = dict(one.split("=", 1) for one in config["config"]["Env"])
    commands = {
        ("netprobe", "--version"): VERSION,
        ("sh", "-c", "python3 -c 'import ssl; print(6 * 7)'"): "42\n",
        ("sh", "-c", "ssh -V 2>&1 | cut -c1-8"): "OpenSSH_\n",
    }
    for words, printed in commands.items():
        argv = [shutil.which("chroot") or "chroot", str(root), *words]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")


def test_pip_without_an_index(tmp_path: Path) -> None:
    """The wheelhouse has all that pip needs. The wheel brings pages and completions, and no file of
    it is left when it is removed."""
    with tarfile.open(make_wheelhouse(tmp_path)) as archive:
        archive.extractall(tmp_path, filter="data")
    venv.create(tmp_path / "venv", with_pip=True)
    pip = [f"{tmp_path}/venv/bin/python", "-m", "pip", "--isolated", "-q"]
    wheels = ["--no-index", "--find-links", f"{tmp_path}/wheelhouse", "netprobe-matrix[xlsx]"]
    subprocess.run([*pip, "install", *wheels], check=True, capture_output=True)
    command = [f"{tmp_path}/venv/bin/netprobe", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == VERSION
    share = tmp_path / "venv/share"
    assert set(PAGES) <= {one.name for one in (share / "man/man1").iterdir()}
    assert (share / "bash-completion/completions/netprobe").exists()
    assert (share / "netprobe/contrib/systemd/netprobe-watch.service").exists()
    uninstall = [*pip, "uninstall", "-y", "netprobe-matrix"]
    subprocess.run(uninstall, check=True, capture_output=True)
    files = [one for one in (tmp_path / "venv").rglob("*") if one.is_file()]
    assert [one for one in files if "netprobe" in str(one.relative_to(tmp_path))] == []


def test_the_same_bytes_elsewhere(tmp_path: Path) -> None:
    """In another folder, another time zone, under another umask and another user's settings."""
    here = onefile_of(own_arch())
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        target = tmp_path / "a checkout" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            target.write_bytes((ROOT / name).read_bytes())
            target.chmod((ROOT / name).stat().st_mode)
    kept = tmp_path / "a checkout/build/release"
    kept.mkdir(parents=True)
    for name in ("debs", "wheels"):
        (kept / name).symlink_to(ROOT / "build/release" / name)
    env = os.environ | {"TZ": "Asia/Tokyo", "LC_ALL": "C", "SOURCE_DATE_EPOCH": str(source_date())}
    env.pop("PYTHONPATH", None)
    argv = ["sh", "-c", 'umask 077; exec "$0" -m release onefile', sys.executable]
    subprocess.run(argv, cwd=tmp_path / "a checkout", env=env, check=True, capture_output=True)
    (there,) = (tmp_path / "a checkout/dist").glob("*.run")
    assert there.read_bytes() == here.read_bytes(), fingerprint()
