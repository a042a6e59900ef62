"""Host keys that ssh does not trust, in words: what mends them for many hosts at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from netprobe.model.host_key import HostKey
from netprobe.model.names import names_text
from netprobe.model.printable import clean, word_command

# With more hosts than these, names are cut; commands are for all of them.
_MOST_NAMES = 8


class KeyTrouble(NamedTuple):
    """One trouble of many hosts: what it is, and what to do, with one command for all of them."""

    what: str
    to_do: str


def word_host_keys(keys: Mapping[str, HostKey]) -> Iterator[KeyTrouble]:
    """Word the troubles of these hosts, one for each command that is needed."""
    groups: dict[tuple[object, ...], dict[str, HostKey]] = {}
    for host, key in keys.items():
        way = (key.options,) if key.state == "unknown" else (key.file,)
        groups.setdefault((key.state, *way), {})[host] = key
    for (state, *_), some in groups.items():
        yield _word_unknown(some) if state == "unknown" else _word_changed(some)


def _word_unknown(keys: Mapping[str, HostKey]) -> KeyTrouble:
    targets = list(dict.fromkeys(key.target for key in keys.values()))
    options = next(iter(keys.values())).options
    # As netprobe gets there: through jump hosts too, which ssh-keyscan does not know.
    asking = ["ssh", *options, "-o", "StrictHostKeyChecking=ask"]
    if len(targets) == 1:
        command = word_command([*asking, targets[0], "true"])
    else:
        command = _word_loop(targets, f'{word_command(asking)} "$host" true')
    return KeyTrouble(
        f"{_word_whose(list(keys))} not known yet",
        "Compare each fingerprint with what those who keep the hosts say, and accept it: "
        f"{command}",
    )


def _word_changed(keys: Mapping[str, HostKey]) -> KeyTrouble:
    names = list(dict.fromkeys(key.name or key.target for key in keys.values()))
    file = next(iter(keys.values())).file
    forget = ["ssh-keygen", *(["-f", file] if file else []), "-R"]
    if len(names) == 1:
        command = word_command([*forget, names[0]])
    else:
        command = _word_loop(names, f'{word_command(forget)} "$host"')
    # By the name that ssh knows it by: the key may be that of a jump host before these hosts.
    shown = {f"{key.name or key.target} ({key.sent})": None for key in keys.values() if key.sent}
    sent = f": {clean(', '.join(shown))}" if 0 < len(shown) <= _MOST_NAMES else ""
    return KeyTrouble(
        f"on the way to {_word_hosts(list(keys))} a host key is NOT THE KNOWN ONE any more{sent}; "
        "this may be an attack, or hosts that were installed anew",
        "Ask those who keep the hosts for the fingerprints by another way than this network; only "
        f"for those that agree: {command}, then connect once by hand.",
    )


def _word_loop(words: Sequence[str], command: str) -> str:
    return f"for host in {word_command(words)}; do {command}; done"


def _word_whose(hosts: Sequence[str]) -> str:
    are = "host key of {} is" if len(hosts) == 1 else "host keys of {} are"
    return f"the {are.format(_word_hosts(hosts))}"


def _word_hosts(hosts: Sequence[str]) -> str:
    named = clean(names_text(hosts, _MOST_NAMES))
    return named if len(hosts) == 1 else f"{len(hosts):,} hosts ({named})"
