"""A bundle that was carried to the host: it finds itself, runs by the clock, and leaves a file."""

import json
import os
import re
import sys
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple
from zlib import decompress

from ..host.identity import addresses
from ..main import prepare_process
from .pages import PageResults
from .pod import PodPlace, hand_on_further, hand_on_page, leave_pages, leave_words, read_place
from .results import HostClock, ResultFile
from .runner import (
    BatchAgent,
    RoundRunner,
    WrongUse,
    check_deadline,
    format_time,
    make_agent,
    print_line,
    refuse,
    say,
    take_lock,
)
from .script import Script, read_script
from .summary import STOPPED_STATUS, WRONG_STATUS

HOSTS_MEMBER = "hosts"
USAGE = "usage: python3 %s [--out DIR] [--host NAME]"
# What only containers of a pod are started with.
POD_OPTIONS = {"--message": "", "--pages": "", "--limits": "", "--page": "1", "--pause": ""}
# The wall clock may be set while we wait.
WATCH_S = 1.0
SHORT_S = 0.1
MOST_NAMES = 12

# Index, name, addresses, and where its script lies: offset and length.
HostEntry = Tuple[int, str, List[str], int, int]


class Options(NamedTuple):
    """What the command line says."""

    out: str
    host: Optional[str]
    shift_s: float
    pod: Optional[PodPlace]


class ClockBarrier:
    """Passes phases at their times; without a start at once."""

    def __init__(self, agent: BatchAgent, script: Script, clock: HostClock) -> None:
        start = script.start
        self._agent = agent
        self._clock = clock
        self._times = {}
        if start.barrier == "clock" and start.starts_at is not None:
            at = start.starts_at
            self._times = {
                "listen": at - start.margin_s,
                "go": at,
                "tell": at + start.window_s + start.margin_s,
            }

    def wait(self, phase: str, then: Callable[[], None]) -> None:
        """Call ``then`` when it is time for the phase."""
        left_s = self._times.get(phase, 0.0) - self._clock.now()
        if left_s > SHORT_S and phase == "listen":
            opens = format_time(self._times[phase])
            begins = format_time(self._times["go"])
            say("waiting until %s to listen, %s to probe; keep this running" % (opens, begins))
        self._watch_clock(phase, then)

    def _watch_clock(self, phase: str, then: Callable[[], None]) -> None:
        left_s = self._times.get(phase, 0.0) - self._clock.now()
        if left_s <= 0:
            then()
        else:
            self._agent.loop.call_later(
                min(left_s, WATCH_S), lambda: self._watch_clock(phase, then)
            )


def main() -> None:
    """Run this host's part; it ends the process."""
    prepare_process()
    place = None
    try:
        options = _read_options(sys.argv[1:])
        place = options.pod
        status = _run_host(options)
    except (WrongUse, ValueError) as error:
        status = refuse(error) if place is None else leave_words(place, str(error))
    os._exit(status)


def _run_host(options: Options) -> int:
    if options.pod is not None and options.pod.pause_s is not None:
        return hand_on_further(options.pod)
    if options.pod is not None and options.pod.page > 1:
        return hand_on_page(options.pod)
    clock = HostClock(options.shift_s)
    loader: Any = sys.modules["__main__"].__loader__
    hosts, blob = _read_table(loader.get_data(os.path.join(loader.archive, HOSTS_MEMBER)))
    _, _, _, at, length = _choose_host(hosts, options.host)
    script = read_script(blob[at : at + length])
    start = script.start
    check_deadline(start, clock)
    lock = take_lock(start)
    if lock is None:
        raise WrongUse("%s runs this already, in another process" % start.name)
    place = options.pod
    if place is not None:
        results = PageResults(script, clock)
        agent = make_agent(lambda _: results)
        _carry_out(agent, script, lock)
        leave_pages(place, results.make_pages(place.limits))
        return 0
    path = os.path.join(options.out, _name_file(start.name, start.round))
    agent = make_agent(lambda loop: ResultFile(loop, _create_file(path), start, clock))
    is_over = _carry_out(agent, script, lock)
    return _report_end(agent, start, path, is_over)


def _carry_out(agent: BatchAgent, script: Script, lock: Any) -> bool:
    """Run the script to its end; False where something stopped it before."""
    agent.keep = (*agent.keep, lock)
    is_over: List[bool] = []

    def finish() -> None:
        is_over.append(True)
        agent.end()

    clock = agent.results.clock
    RoundRunner(agent, script, ClockBarrier(agent, script, clock).wait, finish).begin()
    agent.serve()
    agent.close()
    agent.results.mark(script.start.round, "end" if is_over else "stopped")
    agent.results.close()
    return bool(is_over)


def _report_end(agent: BatchAgent, start: Any, path: str, is_over: bool) -> int:
    """Print the one line, and give the exit status."""
    failure = agent.results.failure
    if failure is not None:
        say("%s cannot be written: %s; nothing of it counts" % (path, failure.strerror))
        return WRONG_STATUS
    about = "netprobe %s, round %d, %s" % (start.run, start.round, start.name)
    about += "" if is_over else " was stopped"
    print_line(agent.summary.line(about, "; results in %s" % path))
    return agent.summary.status() if is_over else STOPPED_STATUS


def _read_options(words: Sequence[str]) -> Options:
    found = dict({"--out": ".", "--host": "", "--shift-clock": "0"}, **POD_OPTIONS)
    waiting = list(words)
    while waiting:
        name, sign, value = waiting.pop(0).partition("=")
        if name in ("-h", "--help"):
            print_line(_print_usage())
            os._exit(0)
        if name not in found or not (sign or waiting):
            raise WrongUse("%s is unknown or lacks its value; %s" % (name, _print_usage()))
        found[name] = value if sign else waiting.pop(0)
    shift_s = float(found["--shift-clock"])
    return Options(found["--out"], found["--host"] or None, shift_s, read_place(found))


def _print_usage() -> str:
    return USAGE % os.path.basename(sys.argv[0])


def _read_table(data: bytes) -> Tuple[List[HostEntry], bytes]:
    """Give the table of hosts, and what their places refer to."""
    length, _, rest = data.partition(b"\n")
    table = json.loads(decompress(rest[: int(length)]).decode("utf-8"))
    return [tuple(entry) for entry in table], rest[int(length) :]


def _choose_host(hosts: List[HostEntry], name: Optional[str]) -> HostEntry:
    """Find this host: by its name, where that is given, else by its addresses."""
    if name is not None:
        named = [entry for entry in hosts if entry[1] == name]
        if not named:
            raise WrongUse(
                "there is no host %s in this run; its hosts are %s" % (name, _list_names(hosts))
            )
        return named[0]
    own = addresses()
    found = [entry for entry in hosts if set(entry[2]) & set(own)]
    if len(found) == 1:
        return found[0]
    here = ", ".join(own[:MOST_NAMES])
    if not found:
        raise WrongUse(
            "no host of this run (%s) has an address of this one (%s); name it with --host"
            % (_list_names(hosts), here)
        )
    raise WrongUse(
        "the addresses of this host (%s) are those of %s; name it with --host"
        % (here, _list_names(found))
    )


def _list_names(hosts: List[HostEntry]) -> str:
    names = [entry[1] for entry in hosts]
    more = " and %d more" % (len(names) - MOST_NAMES) if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _name_file(name: str, number: int) -> str:
    """Give the name of a host's results; those of later rounds stand beside the first."""
    safe = re.sub("[^A-Za-z0-9._-]", "_", name)
    return "%s.npr" % safe if number == 1 else "%s.round%d.npr" % (safe, number)


def _create_file(path: str) -> int:
    """Create the file of results, which must not be there."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
    except FileExistsError:
        raise WrongUse(
            "%s is there already: this host has run before; move it away to run again" % path
        ) from None
    except OSError as error:
        raise WrongUse("%s cannot be written: %s" % (path, error.strerror)) from None
