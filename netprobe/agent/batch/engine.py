"""A run that an engine drives: started by one command, told what to do by others.

A command is a file in the run's folder, whose name comes through a pipe. The agent removes the file
when it has done what it says: that is what the command waits for.
"""

import os
import time
from typing import Callable, List, Optional, Tuple

from ..core import loop as looping
from ..core.agent import DeadMan
from ..main import prepare_process
from ..wire.batch import LOST_WORD, SILENCE_WORD, STARTED_FILE, STARTED_LINE
from ..wire.frames import SILENCE_S
from .folder import RunFolder, find_folder, make_folder
from .life import WrongUse, check_deadline, make_agent, print_line, refuse, take_lock
from .results import HostClock
from .runner import PHASE_S, BatchAgent, RoundRunner
from .script import Script, read_script, take_packed

READ_BYTES = 65536
POLL_S = 0.1

# How far a round is.
BEGUN, LISTENING, GOING, PROBED, TELLING, TOLD = range(6)
# What a command waits for.
REACHED = {"next": LISTENING, "go": GOING, "wait": PROBED, "tell": TOLD}
AT = {"listen": BEGUN, "go": LISTENING, "tell": PROBED}

Callback = Callable[[], None]


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
    agent = make_agent(folder.open_results(), script.start, clock)
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
