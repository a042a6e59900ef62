"""`make dist`: every file of a release, in the order in which they are needed."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from release.components import hash_of
from release.image import make_image
from release.onefile import built_wheel, make_onefile
from release.packages import make_packages
from release.payload import add_member
from release.places import ARCHES, BUILD, DIST, ROOT, VERSION, ReleaseError, source_date
from release.share import write_share
from release.wheels import fetch_wheels

_COLLECTION = ROOT / "ansible_collections/netprobe/preflight"
# What the wheelhouse is for.
_PYTHONS = ("3.11", "3.12", "3.13")
_INTEL, _ARM = ARCHES


def make_dist() -> None:
    """Build everything, and list it. Raises ReleaseError at the first that cannot be built."""
    # What is built by others heeds it, too: hatchling, nfpm, click-man.
    os.environ["SOURCE_DATE_EPOCH"] = str(source_date())
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    run_steps(_list_steps())
    _write_sums()
    for path in sorted(DIST.iterdir()):
        print(f"{path.stat().st_size:>12,}  {hash_of(path)}  {path.name}")


def _list_steps() -> Iterable[tuple[str, Callable[[], object]]]:
    """Give the names of files, and what builds them."""
    yield "wheel and sdist", _make_python_packages
    yield f"netprobe-{VERSION}-x86_64.run", lambda: make_onefile(_INTEL)
    yield f"netprobe-{VERSION}-aarch64.run", lambda: make_onefile(_ARM)
    yield f"netprobe-{VERSION}-wheelhouse.tar", make_wheelhouse
    yield f"netprobe_{VERSION}_amd64.deb and .rpm", lambda: make_packages(_INTEL)
    yield f"netprobe-{VERSION}.oci.tar", lambda: make_image(_INTEL)
    yield f"netprobe-preflight-{VERSION}.tar.gz", _make_collection
    yield f"netprobe-{VERSION}.cdx.json", _make_sbom


def run_steps(steps: Iterable[tuple[str, Callable[[], object]]]) -> None:
    """Build one after the other. Raises ReleaseError, which names what could not be built."""
    for name, build in steps:
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            build()
        except ReleaseError as error:
            raise ReleaseError(f"{name}: FAILED, {error}; nothing after it was built") from error


def _make_python_packages() -> None:
    write_share()
    for builder, versions in ((WheelBuilder, ["standard"]), (SdistBuilder, ["standard"])):
        list(builder(str(ROOT)).build(directory=str(DIST), versions=versions))


def make_wheelhouse(into: Path = DIST) -> Path:
    """Pack the wheels for every Python and architecture, with netprobe's own, in a folder."""
    with built_wheel() as own:
        return _pack_wheels(own, into / f"netprobe-{VERSION}-wheelhouse.tar")


def _pack_wheels(own: Path, target: Path) -> Path:
    wheels = {own.name: own}
    for arch in ARCHES:
        for python in _PYTHONS:
            wheels |= {path.name: path for path in fetch_wheels(arch, python)}
    with tarfile.open(target, "w") as tar:
        add_member(tar, "wheelhouse", None, 0o755, source_date())
        for name, path in sorted(wheels.items()):
            add_member(tar, f"wheelhouse/{name}", path.read_bytes(), 0o644, source_date())
    return target


def _make_collection() -> None:
    """Let Ansible build its collection, and pack that again without the time and the user."""
    program = Path(sys.executable).with_name("ansible-galaxy")
    folder = BUILD / "collection"
    done = subprocess.run(
        [program, "collection", "build", "--force", "--output-path", folder, _COLLECTION],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ReleaseError((done.stderr.strip().splitlines() or ["ansible-galaxy failed"])[-1])
    (built,) = folder.glob("netprobe-preflight-*.tar.gz")
    _pack_again(built, DIST / built.name)


def _pack_again(source: Path, target: Path) -> None:
    raw = io.BytesIO()
    with tarfile.open(source) as old, tarfile.open(fileobj=raw, mode="w") as new:
        for member in sorted(old, key=lambda one: one.name):
            file = old.extractfile(member) if member.isfile() else None
            data = None if file is None else file.read()
            mode = 0o755 if data is None or member.mode & 0o100 else 0o644
            add_member(new, member.name, data, mode, source_date())
    target.write_bytes(gzip.compress(raw.getvalue(), 9, mtime=0))


def _make_sbom() -> None:
    from release.sbom import make_sbom  # noqa: PLC0415 - its libraries are slow to import

    (DIST / f"netprobe-{VERSION}.cdx.json").write_text(make_sbom(), encoding="utf-8")


def _write_sums() -> None:
    lines = [f"{hash_of(path)}  {path.name}\n" for path in sorted(DIST.iterdir())]
    (DIST / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
