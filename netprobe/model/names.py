"""Names of hosts, folded without losing one, and the known names nearest to a mistyped one.

What name servers say of the names of the installation: facts, without judgement.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from netprobe.model.plan import AskedName

# The number at the end of the host's own name, whatever its domain: node-12.zone-2.example.com.
_NUMBERED = re.compile(r"([^.]*?)(\d+)(\..*)?")
# Names of a shorter run are easier to read one by one than as a range.
_SHORTEST_RANGE = 4
_SHORT_NAME = 2
_MOST_NAMED = 20

# What became of the question in its full size, where a smaller one was answered:
#   lost    the answer in full size did not come, and would not fit into one packet
#   edns    questions with EDNS are not answered, plain ones are
#   cut     the answer is cut off over UDP, and TCP gives none
NameTrouble = Literal["", "lost", "edns", "cut"]

# What a server says that has the name, or knows that nobody has it.
VIEWS = ("NOERROR", "NXDOMAIN", "no record")
NO_ANSWERS = ("no answer", "refused")


def names_text(names: Sequence[str], most: int) -> str:
    """Names in their order, numbered runs folded: ``master-0, worker-[1-40] and 37 more``."""
    runs = _split_into_runs(names)
    shown, rest = runs[:most], runs[most:]
    text = ", ".join(word for run in shown for word in _run_text(run))
    more = sum(len(run) for run in rest)
    return f"{text} and {more:,} more" if more else text


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Up to three known names that look like ``name``, the nearest first."""
    by_lower = {other.lower(): other for other in sorted(set(known))}
    # Of two letters one may be wrong, as in w9 for w1.
    least = 0.5 if len(name) <= _SHORT_NAME else 0.6
    return [by_lower[hit] for hit in difflib.get_close_matches(name.lower(), by_lower, 3, least)]


def word_unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """``no role of that name; did you mean worker?``, or the known ones where nothing is near."""
    names = sorted(set(known))
    near = nearest(name, names)
    if near:
        return f"no {kind} of that name; did you mean {' or '.join(near)}?"
    expected = f"expected one of {names_text(names, _MOST_NAMED)}" if names else "there is none"
    return f"no {kind} of that name; {expected}"


def _split_into_runs(names: Sequence[str]) -> list[list[str]]:
    """Runs to fold; names of a run too short to fold stand alone."""
    runs: list[list[str]] = []
    for name in names:
        if runs and _is_next_name(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    return [
        part
        for run in runs
        for part in ([run] if len(run) >= _SHORTEST_RANGE else [[name] for name in run])
    ]


def _is_next_name(left: str, right: str) -> bool:
    before, after = _NUMBERED.fullmatch(left), _NUMBERED.fullmatch(right)
    if before is None or after is None or before[1] != after[1] or before[3] != after[3]:
        return False
    padded = len(before[2]) != len(after[2]) and "0" in (before[2][0], after[2][0])
    return not padded and int(before[2]) + 1 == int(after[2])


def _run_text(run: Sequence[str]) -> list[str]:
    first, last = _NUMBERED.fullmatch(run[0]), _NUMBERED.fullmatch(run[-1])
    if len(run) < _SHORTEST_RANGE or first is None or last is None:
        return list(run)
    return [f"{first[1]}[{first[2]}-{last[2]}]{first[3] or ''}"]


class NameTold(Struct, frozen=True):
    """What one server told one source of one name.

    ``said`` is the code of DNS (``NOERROR`` with addresses, ``NXDOMAIN`` ...), or ``no record``,
    ``no answer``, ``refused``, ``no DNS``. ``size``: bytes of the whole answer.
    """

    name: str
    said: str
    addresses: tuple[str, ...] = ()
    size: int = 0
    trouble: NameTrouble = ""

    @property
    def answer(self) -> tuple[str, tuple[str, ...]] | None:
        """What the server says of the name, to be compared with what others say.

        None where the server failed: a failure is a trouble of its own.
        """
        is_view = self.said in VIEWS and self.trouble != "cut"
        return (self.said, self.addresses) if is_view else None


class ServerTold(Struct, frozen=True):
    """What one server told one source: of names, of names that nobody made, and of its zones.

    ``strangers`` and ``serials`` go by the domain that the names are in. ``resolver``: it stands in
    the source's own resolv.conf, and the inventory may not know it. ``varying``: names that it
    answers otherwise each time, as balancers do. ``alive``: it answered anything at all.
    ``root``: what it said of the root, where that was asked.
    ``resolves``: it said of anything that it exists, or that it does not.
    """

    source: str
    server: str
    told: tuple[NameTold, ...]
    strangers: tuple[NameTold, ...] = ()
    serials: tuple[tuple[str, int], ...] = ()
    resolver: bool = False
    varying: tuple[str, ...] = ()
    alive: bool = True
    root: str | None = None
    resolves: bool = True

    def of(self, name: str) -> NameTold | None:
        """Give what it told of this name."""
        return next((one for one in self.told if one.name == name), None)


class NameFacts(Struct, frozen=True):
    """All about the names that one flow's server was asked for.

    ``others`` are other servers that the same source asked, ``elsewhere`` what this server told
    other sources, as far as it is something else.
    """

    asked: tuple[AskedName, ...]
    own: ServerTold
    others: tuple[ServerTold, ...] = ()
    elsewhere: tuple[ServerTold, ...] = ()


class ResolverFacts(Struct, frozen=True):
    """What the name servers told one host that it is configured with, each one ``ServerTold``.

    ``unresolved``: names set to look up that its programs get no address for. ``gateway``: the next
    hop on the way to the first of the servers, where all are silent.
    """

    servers: tuple[ServerTold, ...]
    unresolved: tuple[str, ...]
    gateway: str | None = None
