"""An image as an OCI archive, without a daemon: one layer, which is a tar with a fixed order.

It holds busybox, OpenSSH's client and the tree of the one file, whose libraries serve all of them.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from release.components import write_licences
from release.debian import IMAGE, PYTHON, fetch_packages, locked_packages, read_package
from release.interpreter import needed_libraries
from release.onefile import lay_out_tree
from release.payload import add_member, list_files, mode_of
from release.places import BUILD, DIST, VERSION, Arch, ReleaseError, source_date

_TREE = "usr/lib/netprobe"
_PROGRAMS = ("usr/bin/ssh", "usr/bin/ssh-add", "usr/bin/ssh-agent")
_LOADERS = {"x86_64": "lib64/ld-linux-x86-64.so.2", "aarch64": "lib/ld-linux-aarch64.so.1"}
_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnetprobe:x:1000:1000::/home/netprobe:/bin/sh\n",
    "etc/group": "root:x:0:\nnetprobe:x:1000:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
_FOLDERS = {"root": 0o700, "tmp": 0o1777, "run": 0o755, "home/netprobe": 0o755, "work": 0o1777,
            "proc": 0o755, "sys": 0o755, "dev": 0o755}  # fmt: skip
_INDEX = "application/vnd.oci.image.index.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def make_image(arch: Arch, into: Path = DIST) -> Path:
    """Build the archive in a folder and give its path. Raises ReleaseError."""
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        root = Path(name)
        links = _lay_out_root(arch, root)
        layer = _pack_layer(root, links)
    packed = gzip.compress(layer, 6, mtime=0)
    config = _encode(_describe_image(arch, layer))
    manifest = _encode({
        "schemaVersion": 2, "mediaType": _MANIFEST,
        "config": _point_to(config, _CONFIG), "layers": [_point_to(packed, _LAYER)],
    })  # fmt: skip
    pointer = _point_to(manifest, _MANIFEST) | {
        "annotations": {"org.opencontainers.image.ref.name": VERSION}
    }
    index = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": [pointer]}
    files = {f"blobs/sha256/{_digest_of(one)}": one for one in (config, manifest, packed)}
    files["index.json"] = _encode(index)
    files["oci-layout"] = _encode({"imageLayoutVersion": "1.0.0"})
    return _write_archive(into / f"netprobe-{VERSION}.oci.tar", files)


def _lay_out_root(arch: Arch, root: Path) -> dict[str, str]:
    """Lay out the image's root; gives its links."""
    lay_out_tree(arch, root / _TREE)
    write_licences(arch, root / "usr/share/doc/netprobe", (*PYTHON, *IMAGE))
    packages = locked_packages(arch, IMAGE)
    fetch_packages(packages)
    for package in packages:
        for name, content in read_package(package):
            place = _place_of(name, arch)
            if place is not None and isinstance(content, bytes):
                path = root / place
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                path.chmod(0o755)
    for name, text in _FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    for name in _FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    return dict(_find_links(arch, root))


def _place_of(name: str, arch: Arch) -> str | None:
    if name in _PROGRAMS or name == "bin/busybox":
        return name
    folder, _, base = name.rpartition("/")
    is_library = folder in (f"lib/{arch.triplet}", f"usr/lib/{arch.triplet}") and ".so." in base
    return f"usr/lib/{arch.triplet}/{base}" if is_library else None


def _find_links(arch: Arch, root: Path) -> Iterator[tuple[str, str]]:
    """Give the names by which programs find each other, and what they stand for."""
    listed = subprocess.run(
        [root / "bin/busybox", "--list"], capture_output=True, text=True, check=False
    )
    if listed.returncode:
        raise ReleaseError(f"busybox for {arch} cannot be run here")
    yield from ((f"bin/{name}", "busybox") for name in listed.stdout.split() if name != "busybox")
    yield "usr/bin/netprobe", f"/{_TREE}/bin/netprobe"
    # For agents: the image is a vantage on hosts without Python.
    yield "usr/bin/python3", f"/{_TREE}/bin/python"
    yield _LOADERS[arch], f"/{_TREE}/lib/ld.so"
    libraries = root / "usr/lib" / arch.triplet
    own = {path.name: path for path in libraries.iterdir()}
    waiting = [root / name for name in _PROGRAMS]
    done = set()
    while waiting:
        for name in needed_libraries(waiting.pop()):
            if name in done or name.startswith("ld-linux"):
                continue
            done.add(name)
            carried = root / _TREE / "lib" / name
            # A file has the name of its release; what is asked for is shorter.
            found = own.get(name) or next(
                (p for n, p in own.items() if n.startswith(name)), carried
            )
            if not found.exists():
                raise ReleaseError(f"the image lacks {name}")
            waiting.append(found)
            if found.name != name or found == carried:
                target = found.name if found != carried else f"/{_TREE}/lib/{name}"
                yield f"usr/lib/{arch.triplet}/{name}", target


def _pack_layer(root: Path, links: dict[str, str]) -> bytes:
    when = source_date()
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, path in list_files(root):
            mode = _FOLDERS.get(name, mode_of(path))
            add_member(tar, name, None if path.is_dir() else path.read_bytes(), mode, when)
        seen = {name for name, path in list_files(root)}
        for name, target in sorted(links.items()):
            parent = name.rpartition("/")[0]
            if parent not in seen:
                add_member(tar, parent, None, 0o755, when)
                seen.add(parent)
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.mtime = tarfile.SYMTYPE, target, when
            tar.addfile(member)
    return raw.getvalue()


def _describe_image(arch: Arch, layer: bytes) -> dict[str, object]:
    created = datetime.fromtimestamp(source_date(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "org.opencontainers.image.title": "netprobe",
        "org.opencontainers.image.version": VERSION,
        "org.opencontainers.image.licenses": "MIT",
    }
    return {
        "created": created, "architecture": arch.debian, "os": "linux",
        "config": {
            "Env": ["PATH=/usr/bin:/bin", "HOME=/root"], "Cmd": ["netprobe", "--help"],
            "WorkingDir": "/work", "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_digest_of(layer)}"]},
        "history": [{"created": created, "created_by": "netprobe: make dist"}],
    }  # fmt: skip


def _encode(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _point_to(data: bytes, kind: str) -> dict[str, object]:
    return {"mediaType": kind, "digest": f"sha256:{_digest_of(data)}", "size": len(data)}


def _write_archive(path: Path, files: dict[str, bytes]) -> Path:
    when = source_date()
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for folder in ("blobs", "blobs/sha256"):
            add_member(tar, folder, None, 0o755, when)
        for name, data in sorted(files.items()):
            add_member(tar, name, data, 0o644, when)
    return path
