"""`make demo`: build a small cluster, run netprobe on it, and check that it found what is blocked.

Where it may make network namespaces it uses those, else those of a user namespace; where the kernel
allows neither, it says so and probes loopback addresses of this machine. ``--reduced`` does that
anywhere.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from demo import estate, reduced  # noqa: E402
from tests.lab import userns  # noqa: E402
from tests.lab.cli import COMMAND, environment, flows_of  # noqa: E402
from tests.lab.expected import PATH_MTU, Flow  # noqa: E402
from tests.lab.netlab import Lab, LabError, find_program  # noqa: E402
from tests.rights import lack_of  # noqa: E402

SHOWN = 10


def main() -> int:
    """Run the demo that this machine allows; 0 when netprobe's answer was exactly right."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    reason = "asked for" if "--reduced" in sys.argv[1:] else _missing_program()
    if reason is None and lack_of("namespaces") is not None:
        reason = userns.why_not()
        if reason is None:
            userns.enter([sys.executable, __file__])
    if reason is None:
        try:
            return _full()
        except LabError as problem:
            reason = str(problem).splitlines()[0]
    return _reduced(reason)


def _missing_program() -> str | None:
    missing = [name for name in ("ip", "nft", "sysctl") if find_program(name) is None]
    return f"{', '.join(missing)}: not installed" if missing else None


def _full() -> int:
    with Lab() as lab:
        estate.build(lab)
        inventory = estate.write_inventory(lab)
        print(estate.DESCRIPTION, flush=True)
        every, stopped = estate.expected()
        words = ["--matrix", estate.MATRIX, "-i", str(inventory)]
        document, elapsed_s = _netprobe(words, lab)
        print("\nWhat open ports do not show, a rehearsal does:", flush=True)
        source, destination = estate.LOSSY
        one_way = ["--only", "vxlan", "--from", source, "--to", destination]
        rehearsed, _ = _netprobe([*words, *one_way, "--rehearse=overlay"], lab)
    blocked = _flows(document, "blocked")
    passed = _flows(document, "pass")
    measured = {flow for flow in _flows(document) if flow.requirement == PATH_MTU}
    unwanted = (every ^ (_flows(document) - measured)) | ((every | measured) - stopped - passed)
    return _check_rehearsal(rehearsed) or _verdict("blocked", stopped, blocked, unwanted, elapsed_s)


def _check_rehearsal(document: dict[str, Any]) -> int:
    """Of two tunnels, both with an open port, one is blocked; some kernels make none."""
    results = document["results"]
    tunnels = {r["port"]: r["verdict"] for r in results if r["requirement"] == "vxlan/overlay"}
    if {*tunnels.values()} <= {"not-tested"}:
        print("\nThis machine makes no VXLAN tunnels: the report says why.")
        tunnels = estate.TUNNELS
    stopped = {r["requirement"] for r in results if r["verdict"] == "blocked"} - {"vxlan/overlay"}
    wrong = estate.TUNNELS.items() ^ tunnels.items()
    return _failed("wrong of tunnels and ports", {*wrong, *stopped}) if wrong or stopped else 0


def _reduced(reason: str) -> int:
    print(f"DEMO REDUCED: no firewall lab on this machine ({reason}).")
    print(reduced.DESCRIPTION, flush=True)
    with reduced.Estate() as loopback:
        document, elapsed_s = _netprobe(loopback.words, loopback)
    seen = {
        (item["requirement"], item["source"], item["destination"], item["verdict"])
        for item in document["results"]
    }
    if seen == reduced.EXPECTED:
        print(
            f"DEMO OK (reduced): all {len(seen)} answers are as they should be ({elapsed_s:.1f} s)."
        )
        return 0
    return _failed("missing", reduced.EXPECTED - seen) + _failed("wrong", seen - reduced.EXPECTED)


def _netprobe(words: list[str], place: Any) -> tuple[dict[str, Any], float]:
    """Run the real command; its report goes to the terminal, its JSON to a file of the lab."""
    output = place.folder / "run.json"
    output.unlink(missing_ok=True)
    print(f"$ netprobe run {' '.join(words)}\n", flush=True)
    started = time.monotonic()
    done = subprocess.run(
        [*COMMAND, "run", *words, "-o", "text", "-o", f"json={output}"],
        env=environment(),
        check=False,
    )
    if not output.exists():
        raise SystemExit(f"DEMO FAILED: netprobe ended with {done.returncode} and wrote no report")
    return json.loads(output.read_text(encoding="utf-8")), time.monotonic() - started


def _flows(document: dict[str, Any], verdict: str | None = None) -> set[Flow]:
    results = [r for r in document["results"] if verdict in (None, r["verdict"])]
    return {flow for result in results for flow in flows_of(result)}


def _verdict(
    word: str, expected: set[Flow], found: set[Flow], unwanted: set[Flow], elapsed_s: float
) -> int:
    if expected == found and not unwanted:
        print(
            f"\nDEMO OK: the firewall stops {len(expected)} required flows, and netprobe reported"
            f" exactly these as {word}; all others passed ({elapsed_s:.1f} s)."
        )
        return 0
    return (
        _failed("not reported", expected - found)
        | _failed(f"wrongly {word}", found - expected)
        | _failed("neither passed nor blocked on purpose", unwanted - (expected ^ found))
    )


def _failed(what: str, items: Iterable[object]) -> int:
    listed = sorted(map(str, items))
    if listed:
        print(f"DEMO FAILED: {len(listed)} {what}, such as:")
        print("\n".join(f"  {item}" for item in listed[:SHOWN]))
    return 1


if __name__ == "__main__":
    sys.exit(main())
