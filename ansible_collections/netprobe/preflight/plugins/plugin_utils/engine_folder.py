# Copyright: (c) 2026, The netprobe authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine folder: what `netprobe bundle --folder` writes, and where hosts' answers go."""

from __future__ import annotations

import json
import os
import shutil

from ansible.errors import AnsibleActionFail

# Every other strategy lets a host go on before the slowest one has opened its listeners.
LOCKSTEP = ("linear", "debug", "mitogen_linear", "mitogen")
FIRST = "engine-1.json"
# The steps of a round, the first one by its name in the first round; and how many rounds there are.
STEPS, MOST_ROUNDS = ("start", "go", "wait", "collect"), 3
# How long a host waits for its next command, beside what the play's own limits say.
SILENCE_S, SILENCE_A_HOST_S, MOST_SILENCE_S = 30, 0.5, 1800
MOST_WORDS = 1000
SLICE_COUNTS = ("ansible_job_slice_count", "awx_job_slice_count", "tower_job_slice_count")


class EngineFolder:
    """The folder of one run: commands and orders in, a file of answers a host out."""

    def __init__(self, path):
        self.path = path
        engine = self._read_json("engine.json")
        self.round, self._asked = engine["round"], engine["hosts"]
        self._commands, self.last = engine["commands"], engine["last"]
        self._instead = engine.get("instead", {})
        self.early, self.limits, self.most_bytes = (
            engine[name] for name in ("early", "limits", "most_bytes")
        )
        # Later rounds name only the hosts that they ask; all that was started must end.
        first = os.path.exists(os.path.join(path, FIRST))
        before = self._read_json(FIRST) if first else {"hosts": {}}
        self.hosts = dict(before["hosts"], **self._asked)
        if first and self.round > 1:
            # Hosts print what they have of all rounds, and steps that end a run are of the first.
            self.limits = dict(before["limits"], **self.limits)
            self.most_bytes += before["most_bytes"]

    def keep_first(self):
        """Keep which hosts the first round has."""
        if not os.path.exists(os.path.join(self.path, FIRST)):
            shutil.copy(os.path.join(self.path, "engine.json"), os.path.join(self.path, FIRST))

    def steps(self, host):
        """Give the steps that this round has for a host; none where it takes no part."""
        return self._asked.get(host, {}).get("steps", ())

    def command(self, host, step, silence_s):
        """Give the command line of a step on a host, which waits so long for the next one."""
        return f"{self._commands[step]} {self.hosts[host]['word']} {silence_s}"

    def limit_s(self, step):
        """Give how many seconds a step may take on a host, with what is done instead of it."""
        return sum(self.limits[one] for one in (step, *self._instead.get(step, {}).values()))

    def silence_s(self, step, forks):
        """Give in how many seconds the next command comes to a host that has done this step.

        Others may still be in this step, or before the host in the next one, for as long as they
        may. Behind the last step of a round come rounds in which the host may have no part.
        """
        turns = -(-len(self.hosts) // forks)
        place = STEPS.index(step) if step in STEPS else 0
        coming = STEPS[place : place + 2 if turns > 1 else place + 1]
        if step == STEPS[-1]:
            coming = (step, *STEPS * (MOST_ROUNDS - self.round))
        play_s = turns * sum(self.limits.get(one, self.limits["go"]) for one in coming)
        return round(min(MOST_SILENCE_S, SILENCE_S + SILENCE_A_HOST_S * len(self.hosts) + play_s))

    def instead(self, step, status):
        """Give the step to do after one that ended with this status, or None."""
        return self._instead.get(step, {}).get(str(status))

    def orders(self, host, step):
        """Give what a step reads from standard input."""
        return b"".join(map(self._read_bytes, self.hosts[host]["stdin"].get(step, ())))

    def add_answer(self, host, text):
        """Append what a host printed to its file of answers."""
        if text.strip():
            with open(self._result(host), "ab") as file:
                file.write(_encode(text if text.endswith("\n") else text + "\n"))

    def has_answer(self, host):
        """Tell whether the host has ever printed something."""
        return host in self.hosts and os.path.exists(self._result(host))

    def add_error(self, host, text):
        """Keep why a host has no answer, or no further one; the first reason is the real one."""
        if not self.error(host):
            with open(self._result(host, ".error"), "wb") as file:
                file.write(_encode(cut_words(text)) + b"\n")

    def add_mark(self, host, name):
        """Keep that something was tried on a host: ``begun`` or ``ended``."""
        with open(self._result(host, f".{name}"), "w", encoding="utf-8"):
            pass

    def may_go_on(self, host):
        """Tell whether the run may go on there: it was begun, and nobody has ended it."""
        if host not in self.hosts or not os.path.exists(self._result(host, ".begun")):
            return False
        is_lost = self.error(host) and not self.has_answer(host)
        return not is_lost and not os.path.exists(self._result(host, ".ended"))

    def error(self, host):
        """Give why a host is out of the run; nothing while it is in."""
        try:
            with open(self._result(host, ".error"), encoding="utf-8", errors="replace") as file:
                return file.read().strip()
        except FileNotFoundError:
            return ""

    def _read_json(self, name):
        path = os.path.join(self.path, name)
        try:
            with open(path, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError) as error:
            raise AnsibleActionFail(
                f"{path} cannot be read ({error}): netprobe bundle --folder writes it"
            ) from error

    def _result(self, host, ending=None):
        path = os.path.join(self.path, self.hosts[host]["results"])
        return path if ending is None else os.path.splitext(path)[0] + ending

    def _read_bytes(self, name):
        with open(os.path.join(self.path, name), "rb") as file:
            return file.read()


def cut_words(text):
    """Give a host's words as one line that is not too long."""
    return " ".join(text[: 4 * MOST_WORDS].split())[:MOST_WORDS]


def _encode(text):
    """Give the bytes that a host printed, as Ansible keeps them: they may be no text."""
    return text.encode("utf-8", "surrogateescape")


def refuse_play(task, task_vars):
    """Raise AnsibleActionFail where the play does not bring all hosts to a step together."""
    play = _find_play(task)
    strategy = str(play.strategy).rpartition(".")[2]
    if strategy not in LOCKSTEP:
        raise AnsibleActionFail(
            f"strategy {strategy} lets hosts run ahead of each other, and a host that is probed "
            "must listen before others probe it: use strategy linear"
        )
    if play.serial:
        raise AnsibleActionFail(
            f"serial {_list_words(play.serial)} takes the hosts in turns, and those of one turn "
            "cannot probe those of the next: leave serial out of this play"
        )
    for name in SLICE_COUNTS:
        if str(task_vars.get(name) or "1") != "1":
            raise AnsibleActionFail(
                f"this job is one of {task_vars[name]} slices ({name}), and hosts of different "
                "slices cannot probe each other: set the job template's slices to 1"
            )


def refuse_missing(expected, hosts):
    """Raise AnsibleActionFail where fewer hosts take part than the user said."""
    if expected and int(expected) > len(hosts):
        raise AnsibleActionFail(
            f"the play has {len(hosts)} hosts, netprobe_expect_hosts says {expected}: a slice "
            "of the job template, or a limit, hides the others"
        )


def _find_play(task):
    parent = task._parent
    while not hasattr(parent, "_play"):
        parent = parent._parent
    return parent._play


def _list_words(serial):
    return ", ".join(str(item) for item in serial) if isinstance(serial, list) else str(serial)
