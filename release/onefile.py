"""``netprobe-VERSION-ARCH.run``: a shell text, and behind it a packed Python with netprobe."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

from release.agent_runtime import join_runtime, lay_out_runtime
from release.base import START, base_folder, compile_packages, fill_in
from release.interpreter import PACKAGES
from release.payload import Part, keep_part, list_files, load_part, pack_part, sum_line
from release.places import ARCHES, BUILD, DIST, ROOT, VERSION, Arch, ReleaseError
from release.share import write_share

MOST_BYTES = 30_000_000
_HERE = Path(__file__).parent
_SPARE_KB = 2048
_MADE_OF = (
    "netprobe",
    "matrices",
    "contrib",
    "release",
    "hatch_build.py",
    "pyproject.toml",
    "requirements.lock",
)


def make_onefile(arch: Arch) -> Path:
    """Build the file in dist/ and give its path. Raises ReleaseError."""
    data = build_onefile(arch)
    if len(data) > MOST_BYTES:
        raise ReleaseError(f"the file has {len(data):,} bytes, more than {MOST_BYTES:,}")
    path = DIST / f"netprobe-{VERSION}-{arch}.run"
    DIST.mkdir(exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o755)
    return path


def build_onefile(arch: Arch) -> bytes:
    """Give the bytes of the file for an architecture."""
    base = _base_part(arch)
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        own, tree, lists = Path(name, "own"), Path(name, "tree"), Path(name, "lists")
        lay_out_netprobe(arch, own)
        part = pack_part(own)
        joined = join_tree(arch, own, tree)
        names = [*(name for name, _ in list_files(tree)), "NAMES", "SHA256SUMS"]
        lists.mkdir()
        (lists / "NAMES").write_text("\n".join(sorted(names)) + "\n", encoding="utf-8")
        sums = [*base.sums, *part.sums, sum_line(joined, tree), sum_line(lists / "NAMES", lists)]
        (lists / "SHA256SUMS").write_text("\n".join(sorted(sums)) + "\n", encoding="utf-8")
        last = pack_part(lists, is_last=True)
        unpacked = sum(one.unpacked_bytes for one in (base, part, last)) + joined.stat().st_size
    return put_head(arch, base.packed + part.packed + last.packed, unpacked)


def lay_out_tree(arch: Arch, tree: Path) -> None:
    """Lay out in a folder what a file unpacks to."""
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        lay_out_netprobe(arch, Path(name, "own"))
        join_tree(arch, Path(name, "own"), tree)


def join_tree(arch: Arch, own: Path, tree: Path) -> Path:
    """Put the two halves of a tree together; gives the Python for hosts that have none.

    The files are links to those that are kept: write beside them, never to them.
    """
    for part in (base_folder(arch), own):
        shutil.copytree(part, tree, copy_function=os.link, dirs_exist_ok=True)
    return join_runtime(arch, tree)


def put_head(arch: Arch, payload: bytes, unpacked_bytes: int) -> bytes:
    """Put the shell text before a payload, with sizes and sums that fit."""
    kilobytes = unpacked_bytes // 1024 + _SPARE_KB
    words = {
        "VERSION": VERSION, "ARCH": arch, "ARCHES": " and ".join(ARCHES),
        "OTHER": "|".join(one for one in ARCHES if one != arch),
        "KILOBYTES": str(kilobytes),
        "MEGABYTES": str(-(-kilobytes // 1024)),
        "HASH": hashlib.sha256(payload).hexdigest()[:12],
        "START": START.format("$np_dir"), "START_NEW": START.format("$np_new"),
        "START_1": START.format("$1"),
    }  # fmt: skip
    text = fill_in((_HERE / "head.sh").read_text(encoding="utf-8"), words)
    # They stand in the text whose size they say, so all of them are of one width.
    numbers = dict.fromkeys(("SUM_AT", "SUM_END", "PAYLOAD", "SIZE"), 0)
    for _ in range(2):
        filled = fill_in(text, {key: f"{number:<10}" for key, number in numbers.items()})
        before, _, behind = filled.partition("@SUM@")
        at, size = len(before.encode()), len(before.encode()) + 64 + len(behind.encode())
        numbers |= {"SUM_AT": at, "SUM_END": at + 65, "PAYLOAD": size + 1}
        numbers |= {"SIZE": size + len(payload)}
    digest = hashlib.sha256(before.encode() + behind.encode() + payload).hexdigest()
    return f"{before}{digest}{behind}".encode() + payload


def _base_part(arch: Arch) -> Part:
    folder = base_folder(arch)
    path = folder.with_suffix(".part")
    if not path.exists():
        keep_part(pack_part(folder), path)
    return load_part(path)


def lay_out_netprobe(arch: Arch, folder: Path) -> None:
    """Lay out netprobe itself, as its wheel has it, and the Python for hosts that have none."""
    packages = folder / PACKAGES
    packages.mkdir(parents=True)
    with built_wheel() as wheel, zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    for path in packages.glob("*.dist-info/RECORD"):
        path.unlink()
    # Manual pages and completions.
    for path in packages.glob("*.data"):
        shutil.copytree(path / "data", folder, dirs_exist_ok=True)
        shutil.rmtree(path)
    compile_packages(folder, packages)
    lay_out_runtime(arch, base_folder(arch), folder)


@contextlib.contextmanager
def built_wheel() -> Iterator[Path]:
    """Give netprobe's own wheel, with manual pages and completions, for a while."""
    write_share()
    with tempfile.TemporaryDirectory() as name:
        yield Path(next(WheelBuilder(str(ROOT)).build(directory=name, versions=["standard"])))


def fingerprint() -> str:
    """Give a sum of all that a file is made of: where it is the same, so is the file."""
    sums = hashlib.sha256()
    for top in _MADE_OF:
        root = ROOT / top
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.is_file() and "__pycache__" not in path.parts:
                sums.update(os.fsencode(path.relative_to(ROOT)) + b"\0" + path.read_bytes())
    return sums.hexdigest()[:16]
