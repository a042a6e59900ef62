"""The verb ``watch``: opens the history for itself, and prints what begins and ends."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from netprobe.cli.asked import WatchOptions
from netprobe.cli.given import read_seconds
from netprobe.cli.launch import make_runtimes, read_become_password, settings_of
from netprobe.cli.plan import make_plan, tell_note
from netprobe.cli.streams import tell
from netprobe.errors import NetprobeError, RequestError
from netprobe.history.ledger import HistoryFile, open_ledger, refuse_others
from netprobe.judge.verdict import Rules
from netprobe.load.maintenance import load_maintenance
from netprobe.model.exit import PASS
from netprobe.model.maintenance import MaintenanceWindow
from netprobe.model.outage import History, Outage
from netprobe.model.plan import Plan
from netprobe.model.result import HostReport
from netprobe.probe.collect import list_hosts
from netprobe.report.page.marks import word_marks
from netprobe.report.page.progress import host_words, word_failed_hosts
from netprobe.report.page.times import word_begin, word_end
from netprobe.report.page.wording import plural
from netprobe.signals import run_until_signal
from netprobe.vantage.launch import Launcher
from netprobe.vantage.limits import make_room_for_agents
from netprobe.watch.keeping import LookKeeper
from netprobe.watch.round import RoundSeen
from netprobe.watch.watch import Watch, WatchRequest

if TYPE_CHECKING:
    from netprobe.watch.metrics import WatchMetrics
    from netprobe.watch.notify import Notifier

# A watch goes on for months: what is in cycles is freed now and then.
GARBAGE_OBJECTS = 100_000


def watch_verb(options: WatchOptions) -> int:
    """Watch until a signal; what was seen is in the history then."""
    # A hangup waits until there is a watch that reads its files again.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
    every_s = read_seconds("--every", options.every)
    _check_receivers(options.notify)
    windows = _load_windows(options)
    password = read_become_password(options)
    runtimes = make_runtimes(options.agent_python)
    plan = _load_plan(options)
    make_room_for_agents(list_hosts(plan))
    lines = HostLines()
    request = WatchRequest(
        every_s=every_s,
        settings=settings_of(options, options.rate, options.forks),
        rules=Rules(options.strict, options.live),
        load=lambda: _load_plan(options),
        load_maintenance=lambda: _load_windows(options),
        make_launcher=lambda: Launcher(become_password=password, runtimes=runtimes),
        tell_host=lines.tell,
        tell=tell_note,
    )
    with (
        _open_metrics(options.metrics, every_s) as metrics,
        _lock_history(options.history),
        open_ledger(options.history, create=True) as ledger,
    ):
        gc.freeze()
        gc.set_threshold(GARBAGE_OBJECTS)
        run_until_signal(_watch_plan(options, request, ledger, (plan, windows), metrics, lines))
    return PASS


async def _watch_plan(
    options: WatchOptions,
    request: WatchRequest,
    ledger: HistoryFile,
    watched: tuple[Plan, Sequence[MaintenanceWindow]],
    metrics: WatchMetrics | None,
    lines: HostLines,
) -> None:
    told = OutageTelling(options.history)
    takers: list[Callable[[RoundSeen], None]] = [lambda _: lines.tell_held()]
    notifiers: list[Notifier] = []
    if metrics is not None:
        takers.append(metrics.take_round)
        told.histories.append(metrics.state.take_history)
        told.troubles.append(metrics.trouble)
    if options.notify:
        from netprobe.watch.asking_for import RuleTexts
        from netprobe.watch.notify import Notifier, read_receiver

        rules = RuleTexts()
        takers.append(rules.take_round)
        for text in options.notify:
            receiver = read_receiver(text)
            notifiers.append(Notifier(receiver, ledger, rules, request.every_s, request.tell))
        told.histories += (one.take_history for one in notifiers)
    keeper = LookKeeper(ledger, told)
    _tell_start(options, watched[0], keeper)
    told.changed(keeper.history)

    def take_round(seen: RoundSeen) -> None:
        for take in takers:
            take(seen)

    async with asyncio.TaskGroup() as group:
        for one in notifiers:
            group.create_task(one.run())
        await Watch(request, ledger, keeper, take_round).run(*watched)


def _load_plan(options: WatchOptions) -> Plan:
    """Raises NetprobeError, also where there is nothing to watch."""
    plan = make_plan(options, probing=True)
    if not plan.flow_count():
        raise RequestError("nothing to watch: the plan has no flows")
    return plan


def _load_windows(options: WatchOptions) -> Sequence[MaintenanceWindow]:
    """Raises FileErrors."""
    return load_maintenance(options.maintenance) if options.maintenance is not None else ()


def _check_receivers(texts: Sequence[str]) -> None:
    """Raises RequestError for what ``--notify`` does not know."""
    if texts:
        from netprobe.watch.notify import read_receiver

        for text in texts:
            read_receiver(text)


def _tell_start(options: WatchOptions, plan: Plan, keeper: LookKeeper) -> None:
    flows, hosts = plural(plan.flow_count(), "flow"), plural(len(list_hosts(plan)), "host")
    tell(f"netprobe: watching {flows} between {hosts} every {options.every}: {options.history}")
    for outage in keeper.open.values():
        tell(f"netprobe: outage {outage.id} is open: {outage.title}; {word_begin(outage.times)}")


@contextmanager
def _open_metrics(where: str | None, every_s: float) -> Iterator[WatchMetrics | None]:
    """Serve metrics meanwhile, where that is asked for."""
    if where is None:
        yield None
        return
    from netprobe.watch.metrics import WatchMetrics

    with closing(WatchMetrics(every_s)) as metrics:
        metrics.listen(where)
        yield metrics


@contextmanager
def _lock_history(path: str) -> Iterator[None]:
    """Keep a second watch from this history, by whatever name. Raises NetprobeError where there is
    one, and RequestError where this is no history."""
    if os.path.exists(path):
        refuse_others(path)
    lock = f"{os.path.realpath(path)}.lock"
    try:
        file = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise NetprobeError(f"cannot make {lock}: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise NetprobeError(f"{path}: another netprobe watch has this history") from None
    finally:
        os.close(file)


class OutageTelling:
    """Prints a line when an outage begins and when it ends, and hands all on."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.histories: list[Callable[[History], None]] = []
        self.troubles: list[Callable[[str], None]] = []

    def changed(self, history: History) -> None:
        """Hand on what is known."""
        for take in self.histories:
            take(history)

    def began(self, outage: Outage) -> None:
        """Print that an outage began."""
        words = (outage.title, word_begin(outage.times), *word_marks(outage)[:1])
        tell(f"netprobe: outage {outage.id} began: {'; '.join(words)}")

    def ended(self, outage: Outage) -> None:
        """Print that an outage ended."""
        tell(f"netprobe: outage {outage.id} ended: {outage.title}; {word_end(outage.times)}")

    def trouble(self, words: str) -> None:
        """Print what is wrong with the history, or that it can be written again."""
        for take in self.troubles:
            take(words)
        tell(f"netprobe: {words}" if words else f"netprobe: {self._path} can be written again")


class HostLines:
    """Prints a line when a host is lost, or cannot be reached, and when it is back.

    Hosts whose keys ssh does not trust are one line, at the end of a round.
    """

    def __init__(self) -> None:
        self._states: dict[str, str] = {}
        self._held: dict[str, HostReport] = {}

    def tell(self, report: HostReport) -> None:
        """Print what has changed."""
        before = self._states.get(report.name, "agent")
        self._states[report.name] = report.state
        if report.state in ("lost", "failed") and before == "agent":
            if report.host_key is not None:
                self._held[report.name] = report
                return
            tell(f"netprobe: blind for {report.name}: {host_words(report)}")
        elif report.state == "agent" and before in ("lost", "failed"):
            tell(f"netprobe: {report.name} is back")

    def tell_held(self) -> None:
        """Print what is held: one line for each command that mends it."""
        for text in word_failed_hosts(self._held.values()):
            tell(f"netprobe: {text}")
        self._held = {}
