"""Runs shell scripts where the programs of firewalls only write down what they were called with."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

# They record their words; of nft some also print the rules that a script would delete.
PROGRAMS = ("iptables", "ip6tables", "ufw", "firewall-cmd", "nft")
FAKE = """#!/bin/sh
printf '%s\\0' "$#" "${0##*/}" "$@" >>"$WORDS"
test "$1 $2" = "-a list" && while read -r line; do echo "$line"; done <"$RULES"
exit 0
"""
DRIVER = """
for script in "$@"; do
    bash -n "$script" && PATH="$FAKES" /bin/bash "$script"
done
"""


def run_scripts(folder: Path, scripts: Mapping[str, str], nft_rules: str) -> list[list[str]]:
    """Run scripts by bash in an empty folder; give the words of every command that they ran.

    Nothing else is in PATH but sed, which they use. A file that appears, or a word on standard
    error (a command that is not there, a syntax error), fails.
    """
    empty, fakes, words = folder / "empty", folder / "fakes", folder / "words"
    if not fakes.exists():
        fakes.mkdir()
        empty.mkdir()
        for name in PROGRAMS:
            (fakes / name).write_text(FAKE)
            (fakes / name).chmod(0o755)
        (fakes / "sed").symlink_to("/bin/sed")
    words.write_bytes(b"")
    (folder / "rules").write_text(nft_rules)
    paths = []
    for name, text in scripts.items():
        paths.append(folder / f"{name}.sh")
        paths[-1].write_text(text)
    done = subprocess.run(
        ["/bin/bash", "-c", DRIVER, "driver", *map(str, paths)],
        cwd=empty,
        env={"PATH": os.defpath, "FAKES": str(fakes), "WORDS": str(words),
             "RULES": str(folder / "rules")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr, done.stdout) == (0, b"", b"")
    assert list(empty.iterdir()) == []
    return list(_split_words(words.read_bytes().decode().split("\0")[:-1]))


def _split_words(words: list[str]) -> Iterator[list[str]]:
    place = 0
    while place < len(words):
        count = int(words[place]) + 1
        yield words[place + 1 : place + 1 + count]
        place += 1 + count


def listed_rules(text: str) -> str:
    """Give the rules of an nft file as nft lists them, each with a handle."""
    rules = [line for line in text.splitlines() if line.startswith("insert rule")]
    return "".join(f"{rule} # handle {place}\n" for place, rule in enumerate(rules, 5))


_MARK = r"netprobe [0-9a-f]{6} R\d+"
_END = r"(?:address|ipset)=\"[A-Za-z0-9_.:]+\""
_WORD = re.compile(
    rf"-{{0,2}}[A-Za-z0-9_.:/,=-]*|{_MARK}"
    r"|--add-rich-rule=rule priority=\"-100\" family=\"ipv[46]\" "
    rf"source {_END} destination {_END} [a-z -]+(?:[a-z]+=\"[a-z0-9-]+\" ?)+(?:accept|drop)"
)


def check_commands(commands: list[list[str]]) -> None:
    """Every program is one of a firewall, and every word of it an option, an address or a mark."""
    for program, *words in commands:
        assert program in PROGRAMS
        strange = [word for word in words if not _WORD.fullmatch(word)]
        assert not strange, (program, strange)
