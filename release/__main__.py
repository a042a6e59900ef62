"""``python -m release onefile [ARCH] | dist | lock-debian``: what targets of make call."""

from __future__ import annotations

import sys

from release.debian import write_lock
from release.dist import make_dist
from release.onefile import make_onefile
from release.places import Arch, ReleaseError, own_arch


def main(words: list[str]) -> int:
    """Do what the words say; 1 where it cannot be done."""
    try:
        match words:
            case ["onefile", *arch]:
                path = make_onefile(Arch(arch[0]) if arch else own_arch())
                print(f"{path.stat().st_size:>12,}  {path}")
            case ["dist"]:
                make_dist()
            case ["lock-debian"]:
                write_lock()
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
