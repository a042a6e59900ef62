"""A package for Debian and one for RPM: the tree of the one file below /usr/lib/netprobe."""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from release.onefile import lay_out_tree
from release.payload import list_files, mode_of
from release.places import BUILD, DIST, VERSION, Arch, run_program, source_date

_NAMES = {"deb": "netprobe_{version}_{debian}.deb", "rpm": "netprobe-{version}.{arch}.rpm"}
_OWN = (
    "usr/lib/netprobe", "usr/share/netprobe", "usr/share/doc/netprobe", "usr/share/bash-completion",
    "usr/share/fish",
)  # fmt: skip
_ZSH = {"deb": "vendor-completions", "rpm": "site-functions"}
_DESCRIPTION = """\
Tells which network flows that a Kubernetes platform requires are blocked,
by whom, and how sure it is. It brings a Python of its own."""


def make_packages(arch: Arch, into: Path = DIST) -> list[Path]:
    """Build both in a folder, and give their paths. Raises ReleaseError."""
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        root = Path(name)
        _lay_out_root(arch, root)
        return [_make_package(kind, arch, root, into) for kind in _NAMES]


def _lay_out_root(arch: Arch, root: Path) -> None:
    tree = root / "usr/lib/netprobe"
    lay_out_tree(arch, tree)
    for name in ("man", "bash-completion", "fish"):
        (root / "usr/share").mkdir(exist_ok=True)
        (tree / "share" / name).rename(root / "usr/share" / name)
    (tree / "share/zsh/site-functions").rename(root / "zsh")
    (tree / "share/zsh").rmdir()
    (root / "usr/share/doc").mkdir()
    (tree / "share/doc/netprobe").rename(root / "usr/share/doc/netprobe")
    (tree / "share/doc").rmdir()
    units = root / "usr/lib/systemd/system"
    units.parent.mkdir()
    (tree / "share/netprobe/contrib/systemd").rename(units)
    (tree / "share/netprobe/contrib").rename(root / "usr/share/netprobe")
    for page in (root / "usr/share/man/man1").iterdir():
        page.with_name(f"{page.name}.gz").write_bytes(gzip.compress(page.read_bytes(), 9, mtime=0))
        page.unlink()


def _make_package(kind: str, arch: Arch, root: Path, into: Path) -> Path:
    when = datetime.fromtimestamp(source_date(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    contents = [_describe(path, f"/{name}", when) for name, path in list_files(root)
                if name.startswith("usr/") and path.is_file()]  # fmt: skip
    completion = _describe(root / "zsh/_netprobe", f"/usr/share/zsh/{_ZSH[kind]}/_netprobe", when)
    folders = [{"dst": f"/{name}", "type": "dir", "file_info": {"mode": 0o755, "mtime": when}}
               for name in _list_folders(root, kind)]  # fmt: skip
    links = [
        {"src": "../lib/netprobe/bin/netprobe", "dst": f"/usr/bin/{name}", "type": "symlink",
         "file_info": {"mtime": when}}
        for name in ("netprobe", "kubectl-netprobe")
    ]  # fmt: skip
    config = {
        "name": "netprobe", "arch": arch.debian, "platform": "linux", "version": VERSION,
        "version_schema": "semver", "release": "1", "section": "net", "priority": "optional",
        "maintainer": "The netprobe authors <netprobe@localhost>", "description": _DESCRIPTION,
        "license": "MIT", "mtime": when,
        "contents": [*folders, *contents, completion, *links],
        "rpm": {"buildhost": "localhost", "compression": "gzip", "group": "System"},
        "deb": {"compression": "gzip"},
    }  # fmt: skip
    target = into / _NAMES[kind].format(version=VERSION, arch=arch, debian=arch.debian)
    # JSON is YAML.
    (root / "nfpm.yaml").write_text(json.dumps(config), encoding="utf-8")
    argv = [
        str(Path(sys.executable).with_name("nfpm")),
        "package",
        "--config",
        str(root / "nfpm.yaml"),
        "--packager",
        kind,
    ]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(source_date()), "TZ": "UTC"}
    run_program([*argv, "--target", str(target)], env=environment, cwd=root)
    return target


def _list_folders(root: Path, kind: str) -> list[str]:
    """List the folders that only this package may need, so that a removal leaves none."""
    folders = [name for name, path in list_files(root) if path.is_dir() and name.startswith(_OWN)]
    return [*folders, "usr/share/zsh", f"usr/share/zsh/{_ZSH[kind]}"]


def _describe(path: Path, place: str, when: str) -> dict[str, object]:
    return {
        "src": str(path), "dst": place, "file_info": {"mode": mode_of(path), "mtime": when}
    }  # fmt: skip
