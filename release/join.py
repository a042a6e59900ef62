"""Joins the Python for hosts that have none out of the files of the travelling one beside it.

    python join.py FOLDER ARCH

The two share their largest files, and a packed file would hold them twice. It runs when a file is
unpacked, with nothing but the standard library, and writes ``share/netprobe/runtime-ARCH.tar.gz``.
"""

import gzip
import json
import os
import sys
import tarfile

PARTS = "share/netprobe/runtime-{}.json"
WHOLE = "share/netprobe/runtime-{}.tar.gz"


def join(folder: str, arch: str) -> None:
    """Write the file whole or not at all."""
    with open(os.path.join(folder, PARTS.format(arch)), encoding="utf-8") as file:
        members = json.load(file)
    path = os.path.join(folder, WHOLE.format(arch))
    with (
        open(path + ".new", "wb") as out,
        gzip.GzipFile("", "wb", 6, out, 0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, source in members:
            member = tarfile.TarInfo(name)
            member.mode = 0o700
            if source is None:
                member.type = tarfile.DIRTYPE
                tar.addfile(member)
                continue
            with open(os.path.join(folder, source), "rb") as data:
                member.size = os.fstat(data.fileno()).st_size
                tar.addfile(member, data)
    os.rename(path + ".new", path)
    os.utime(path, (0, 0))


if __name__ == "__main__":
    join(*sys.argv[1:])
