"""A program that plays ansible-playbook: it runs an engine folder's steps on this machine, by sh.

Its environment says how: ``FAKE_LOG``, the file to which it writes a line for each of its starts;
``FAKE_HANGS``, whether it waits without end where hosts have probed (``check``, ``end`` or both).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HOST = "here"


def main() -> None:
    """Play the playbook that the first word names."""
    words = sys.argv[1:]
    folder = Path(json.loads(words[words.index("-e") + 1])["netprobe_folder"])
    engine = json.loads((folder / "engine.json").read_text())
    host = engine["hosts"][HOST]
    name = Path(words[0]).stem
    stdin = sys.stdin.read() if "--become-password-file" in words else None
    told = {"name": name, "words": words, "stdin": stdin, "pid": os.getpid(), "run": engine["run"]}
    told |= {"environment": dict(os.environ), "files": list(map(_read, folder.rglob("*")))}
    marks = (folder / host["results"]).with_suffix
    steps = [engine["early"]]
    if name == "check":
        marks(".begun").touch()
        steps = ["start", "go", "wait"]
    for step in steps:
        _run_step(folder, engine, host, step)
    with open(os.environ["FAKE_LOG"], "a", encoding="utf-8") as log:
        log.write(json.dumps(told) + "\n")
    if name in os.environ.get("FAKE_HANGS", ""):
        time.sleep(1000)
    if name == "check":
        _run_step(folder, engine, host, "collect")
        _run_step(folder, engine, host, engine["last"])
    marks(".ended").touch()


def _run_step(folder: Path, engine: dict[str, Any], host: dict[str, Any], step: str) -> None:
    fed = b"".join((folder / file).read_bytes() for file in host["stdin"].get(step, ()))
    line = f"{engine['commands'][step]} {host['word']} 60"
    done = subprocess.run(["sh", "-c", line], input=fed, capture_output=True, check=True)
    with (folder / host["results"]).open("ab") as file:
        file.write(done.stdout)


def _read(path: Path) -> str:
    return path.read_bytes().decode("latin-1") if path.is_file() else ""


if __name__ == "__main__":
    main()
