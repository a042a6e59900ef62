"""A run that an engine drives: started by one command, told what to do by others.

A command is a file in the run's folder, whose name comes through a pipe. The agent removes the file
when it has done what it says: that is what the command waits for.

The private folder of a run that an engine drives: results, words, and who removes it.

Nothing else is written on the host. The agent removes the folder at its end. A shell that waits for
the agent's end, however that comes, removes what the agent could not.
"""

import os
import stat
import time
from typing import Callable, Iterator, List, Optional, Tuple

from ..core import loop as looping
from ..core.agent import DeadMan
from ..host.hello import read_text
from ..main import prepare_process
from ..wire.batch import (
    FOLDER_NAME,
    LOST_WORD,
    PID_FILE,
    RESULTS_FILE,
    SILENCE_WORD,
    STARTED_FILE,
    STARTED_LINE,
    WORDS_FILE,
    BatchStart,
)
from ..wire.frames import PROCESS_NAME, SILENCE_S
from .results import HostClock, ResultFile
from .runner import (
    PHASE_S,
    BatchAgent,
    RoundRunner,
    WrongUse,
    check_deadline,
    make_agent,
    print_line,
    refuse,
    take_lock,
)
from .script import Script, read_script, take_packed

READ_BYTES = 65536
POLL_S = 0.1

# How far a round is.
BEGUN, LISTENING, GOING, PROBED, TELLING, TOLD = range(6)
# What a command waits for.
REACHED = {"next": LISTENING, "go": GOING, "wait": PROBED, "tell": TOLD}
AT = {"listen": BEGUN, "go": LISTENING, "tell": PROBED}

Callback = Callable[[], None]

# What lies in memory comes first.
PLACES = ("/run", "/dev/shm", "/tmp")
GUARD = 'trap "" HUP INT TERM; read -r _; rm -rf -- "$0"'


class RunFolder:
    """A folder of mode 0700, which ``make`` makes anew."""

    def __init__(self, path: str) -> None:
        self.path = path

    def inside(self, name: str) -> str:
        """Give the path of a file in it."""
        return os.path.join(self.path, name)

    def is_alive(self) -> bool:
        """Tell whether the agent that made it lives, in whatever network namespace."""
        pid = read_text(self.inside(PID_FILE)).strip()
        return pid.isdigit() and read_text("/proc/%s/comm" % pid).strip() == PROCESS_NAME

    def write_pid(self) -> None:
        """Say which process this run is."""
        with open(self.inside(PID_FILE), "w") as file:
            file.write("%d\n" % os.getpid())

    def open_results(self) -> int:
        """Create the file of results."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        return os.open(self.inside(RESULTS_FILE), flags, 0o600)

    def open_words(self) -> int:
        """Create the pipe by which commands come; it never ends, because we hold both ends."""
        os.mkfifo(self.inside(WORDS_FILE), 0o600)
        return os.open(self.inside(WORDS_FILE), os.O_RDWR | os.O_NONBLOCK)

    def start_guard(self) -> int:
        """Start the shell that removes the folder when we are gone; gives what keeps it waiting."""
        waiting, holding = os.pipe()
        if os.fork():
            os.close(waiting)
            return holding
        try:
            os.setsid()
            os.dup2(waiting, 0)
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            # Whoever waits for the end of our other descriptors must not wait for this shell.
            os.closerange(3, 256)
            os.execv("/bin/sh", ["sh", "-c", GUARD, self.path])
        finally:
            os._exit(1)

    def remove(self) -> None:
        """Remove it, as far as it is there and our own."""
        try:
            known = os.lstat(self.path)
            if not stat.S_ISDIR(known.st_mode) or known.st_uid != os.geteuid():
                return
            for name in os.listdir(self.path):
                os.unlink(self.inside(name))
            os.rmdir(self.path)
        except OSError:
            pass  # the guard removes what is left


def make_folder(start: BatchStart) -> RunFolder:
    """Make the folder of a run; nobody runs it, so what is there is a dead run's.

    Raises WrongUse where none can be made.
    """
    why = ""
    for path in list_paths(start):
        if RunFolder(path).is_alive():
            raise WrongUse("it goes on here already, in another network namespace")
        RunFolder(path).remove()
        try:
            os.mkdir(path, 0o700)
            return RunFolder(path)
        except OSError as error:
            why = "%s%s%s: %s" % (why, ", " if why else "", path, error.strerror)
    raise WrongUse("no folder can be made for the run (%s)" % why)


def find_folder(start: BatchStart) -> Optional[RunFolder]:
    """Find the folder of the run that goes on here."""
    for path in list_paths(start):
        if os.path.isfile(os.path.join(path, PID_FILE)):
            return RunFolder(path)
    return None


def list_paths(start: BatchStart) -> Iterator[str]:
    """List where the folder may be, in the order in which the places are tried."""
    for place in (*PLACES, os.environ.get("HOME", "")):
        if place:
            yield os.path.join(place, FOLDER_NAME % (start.run, start.host))


class EngineRun:
    """The agent, its folder, and the words of the engine."""

    def __init__(self, agent: BatchAgent, folder: RunFolder, script: Script) -> None:
        self._agent = agent
        self._folder = folder
        self._script = script
        self._level = BEGUN
        self._then: Optional[Callback] = None
        self._begun = False
        # Commands that wait: what for, and their files.
        self._asks: List[Tuple[int, str]] = []
        self._is_told_early = False
        self._is_halted = False
        self._runner: Optional[RoundRunner] = None
        self._buffer = b""
        self._words = folder.open_words()
        self._silence_s = script.start.silence_s
        self._dead_man = DeadMan(agent.loop, self._silence_s, self._end_if_idle)
        # Runs while the engine seems to be lost, whatever is being done.
        self._alone = agent.loop.call_later(0, lambda: None)
        agent.loop.watch(self._words, looping.READ, self._hear_words)

    def begin(self, script: Script) -> None:
        """Begin a round."""
        self._script, self._level, self._is_told_early = script, BEGUN, False
        self._runner = RoundRunner(
            self._agent, script, self._wait_for_word, lambda: self._reach_level(TOLD)
        )
        self._runner.begin()

    def mark_early_end(self) -> None:
        """Write to the results that they are not whole, where that is so."""
        if self._level != TOLD:
            self._agent.results.mark(self._script.start.round, "stopped")

    def _wait_for_word(self, phase: str, then: Callback) -> None:
        """Wait for the word before a phase; listeners open at once."""
        if phase == "listen":
            then()
            return
        self._then = then
        self._reach_level(AT[phase])
        if phase == "go" and not self._begun:
            self._begun = True
            _let_go(self._folder)
        elif phase == "tell" and self._is_told_early:
            self._go_on(TELLING)

    def _go_on(self, level: int) -> None:
        then, self._then = self._then, None
        self._reach_level(level)
        if then is not None:
            then()

    def _reach_level(self, level: int) -> None:
        """Note how far the round is, and let go the commands that waited for it."""
        self._level = level
        self._dead_man.hear()
        waiting, self._asks = self._asks, []
        for needed, name in waiting:
            self._answer_ask(needed, name)
        if level == TOLD and self._is_halted:
            self._agent.end()

    def _answer_ask(self, needed: int, name: str) -> None:
        """Let a command go on, now or when the round is so far."""
        if self._level < needed:
            self._asks.append((needed, name))
            return
        self._agent.results.flush()
        try:
            os.unlink(self._folder.inside(name))
        except OSError:
            pass  # the command has given up

    def _hear_words(self, _events: int) -> None:
        self._dead_man.hear()
        self._buffer += os.read(self._words, READ_BYTES)
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            name = os.path.basename(line.decode("utf-8", "replace"))
            word, _, behind = name.partition(".")
            self._alone.cancel()
            if word == LOST_WORD:
                self._alone = self._agent.loop.call_later(SILENCE_S, self._agent.end)
            elif word == SILENCE_WORD:
                self._allow_silence(behind)
            else:
                self._obey_word(word, name)

    def _allow_silence(self, seconds: str) -> None:
        """Take how long the engine may be silent from now on."""
        if seconds.isdecimal() and len(seconds) < 6:
            self._silence_s = float(seconds)
            self._dead_man.allow(self._silence_s)

    def _obey_word(self, word: str, name: str) -> None:
        if word == "stop":
            self._agent.end()
        elif word == "halt":
            self._end_early()
        elif word == "go" and self._level == LISTENING:
            self._go_on(GOING)
        elif word == "tell" and self._level == PROBED:
            self._go_on(TELLING)
        elif word == "tell" and self._level == GOING:
            self._is_told_early = True
        elif word == "next" and self._level == TOLD:
            self._take_script(name)
        # Who asks for what nobody has begun waits for nothing.
        needed = REACHED.get(word, BEGUN)
        self._answer_ask(BEGUN if self._level == LISTENING and needed > GOING else needed, name)

    def _end_early(self) -> None:
        """End as soon as what was seen so far is told."""
        self._is_halted = self._is_told_early = True
        if self._level in (BEGUN, LISTENING, TOLD) or self._runner is None:
            self._agent.end()
        elif self._level == GOING:
            self._runner.cut_window()
        elif self._level == PROBED:
            self._go_on(TELLING)

    def _take_script(self, name: str) -> None:
        """Begin the round that a command has brought; one that was brought before is none."""
        try:
            with open(self._folder.inside(name), "rb") as file:
                script = read_script(take_packed(file.fileno()))
        except (OSError, ValueError):
            self._agent.fault(None)
            return
        ours, new = self._script.start, script.start
        if (new.run, new.host) == (ours.run, ours.host) and new.round > ours.round:
            self.begin(script)

    def _end_if_idle(self) -> None:
        """End where nobody has said anything for long, and nothing is being done."""
        if self._level in (BEGUN, GOING, TELLING):
            self._dead_man = DeadMan(self._agent.loop, self._silence_s, self._end_if_idle)
        else:
            self._agent.end()


def main() -> None:
    """Read the script from standard input, and go on without whoever started this."""
    prepare_process()
    try:
        script = read_script(take_packed(0))
        clock = HostClock()
        check_deadline(script.start, clock)
        if os.fork():
            os._exit(0)
        os.setsid()
        status = _run_script(script, clock)
    except (WrongUse, ValueError) as error:
        status = refuse(error)
    os._exit(status)


def _run_script(script: Script, clock: HostClock) -> int:
    lock = take_lock(script.start)
    if lock is None:
        return _join_other(script)
    folder = make_folder(script.start)
    holding = folder.start_guard()
    folder.write_pid()
    agent = make_agent(lambda loop: ResultFile(loop, folder.open_results(), script.start, clock))
    agent.keep = (*agent.keep, lock)
    if script.start.ends_at is not None:
        agent.loop.call_later(script.start.ends_at - clock.now(), agent.end)
    run = EngineRun(agent, folder, script)
    run.begin(script)
    agent.serve()
    run.mark_early_end()
    agent.close()
    agent.results.close()
    folder.remove()
    os.close(holding)
    return 0


def _join_other(script: Script) -> int:
    """Say where the run is that was started before, once its listeners are open."""
    until = time.monotonic() + PHASE_S
    while time.monotonic() < until:
        folder = find_folder(script.start)
        if folder is not None and os.path.exists(folder.inside(STARTED_FILE)):
            _tell_folder(folder)
            return 0
        time.sleep(POLL_S)
    raise WrongUse("it was started before, and its listeners are not open yet")


def _let_go(folder: RunFolder) -> None:
    """Tell the command that started this where the results are; then hold nothing of it."""
    os.close(os.open(folder.inside(STARTED_FILE), os.O_WRONLY | os.O_CREAT, 0o600))
    _tell_folder(folder)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)


def _tell_folder(folder: RunFolder) -> None:
    print_line(STARTED_LINE + folder.path)
