# Copyright: (c) 2026, The netprobe authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens on the control node: the netprobe program plans, asks again, and reports."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile

from ansible import constants as C
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.netprobe.preflight.plugins.plugin_utils.engine_folder import (
    EngineFolder,
    refuse_missing,
    refuse_play,
)
from ansible_collections.netprobe.preflight.plugins.plugin_utils.watch import Watch

# netprobe's own exit status: passed, blocked, not everything could be told.
JUDGED = (0, 1, 3)
# Of what netprobe says beside its report; the rest is how far it is.
TOLD = ("netprobe: run ", "netprobe: note:", "netprobe: warning:")
REPORTS = {"text": "netprobe.txt", "json": "netprobe.json", "junit": "netprobe-junit.xml"}
display = Display()


class ActionModule(ActionBase):
    """Runs netprobe as a program on the control node; nothing is sent to a host from here."""

    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp=None, task_vars=None):
        """Do one of bundle, next and merge; give a few numbers and words."""
        result = super().run(tmp, task_vars)
        args = self._task.args
        does = {"bundle": self._make_bundle, "next": self._ask_next, "merge": self._merge_results}
        result.update(changed=False, **does[args["action"]](args, task_vars))
        return result

    def _make_bundle(self, args, task_vars):
        """Write the engine folder, or take one that is given; refuse plays without lockstep."""
        refuse_play(self._task, task_vars)
        hosts = task_vars["ansible_play_hosts_all"]
        refuse_missing(args.get("expect_hosts"), hosts)
        if args.get("folder"):
            folder = EngineFolder(os.path.abspath(os.path.expanduser(args["folder"])))
            folder.keep_first()
            return {"folder": folder.path, "given": True, "hosts": len(folder.hosts)}
        words = list(_list_options(args, task_vars))
        if self._task.check_mode:
            said = self._run_netprobe(args, ["plan", "--count", *words]).stdout
            display.display(f"{said.rstrip()}\ncheck mode: nothing was sent to any host")
            return {"folder": "", "given": False, "hosts": 0}
        # Ansible's own folder of this run: for nobody else, and gone when it ends.
        path = os.path.join(tempfile.mkdtemp(prefix="netprobe-", dir=C.DEFAULT_LOCAL_TMP), "run")
        self._run_netprobe(args, ["bundle", "--folder", path, *words])
        folder = EngineFolder(path)
        folder.keep_first()
        for host in set(folder.hosts).difference(hosts):
            folder.add_error(host, "not a host of this play (a limit?)")
        return {"folder": path, "given": False, "hosts": len(folder.hosts)}

    def _ask_next(self, args, task_vars):
        """Write the orders of the next round; give the hosts that it concerns."""
        if self._task.check_mode:
            return {"hosts": []}
        if not _find_program(args["program"]):
            return {"hosts": [], "msg": "netprobe is not installed here: no further round"}
        before = EngineFolder(args["folder"]).round
        self._run_netprobe(args, ["bundle", "--next", args["folder"]])
        folder = EngineFolder(args["folder"])
        asked = [host for host in folder.hosts if folder.steps(host)]
        return {"hosts": sorted(asked) if folder.round > before else []}

    def _merge_results(self, args, task_vars):
        """Print the report, and leave it where the user wants it; give its first line."""
        if self._task.check_mode:
            return {"status": 0, "headline": "check mode: nothing was sent to any host"}
        words, reports = ["merge", args["folder"], "-o", "text"], {}
        if args.get("report"):
            place = os.path.abspath(os.path.expanduser(args["report"]))
            os.makedirs(place, exist_ok=True)
            reports = {kind: os.path.join(place, name) for kind, name in REPORTS.items()}
            words += [word for kind, path in reports.items() for word in ("-o", f"{kind}={path}")]
        done = self._run_netprobe(args, words, JUDGED)
        display.display(done.stdout.rstrip())
        headline = done.stdout.partition("\n")[0].strip()
        return {"status": done.returncode, "headline": headline, "reports": list(reports.values())}

    def _run_netprobe(self, args, words, expected=(0,)):
        program = _find_program(args["program"])
        if not program:
            raise AnsibleActionFail(
                f"{args['program']} is not installed on the control node: install netprobe-matrix "
                f"for {sys.executable}, or name the program with -e netprobe_command=PATH"
            )
        with Watch(f"netprobe {words[0]}"):
            done = subprocess.run(
                [*program, *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
        if done.returncode not in expected:
            said = done.stderr.strip() or done.stdout.strip() or "it said nothing"
            raise AnsibleActionFail(
                f"netprobe {words[0]} ended with status {done.returncode}: {said}"
            )
        for line in done.stderr.splitlines():
            if line.startswith(TOLD):
                display.display(line)
        return done


def _find_program(command):
    """Find the netprobe program: on PATH, or beside the Python that runs Ansible."""
    words = shlex.split(command)
    beside = os.path.dirname(sys.executable)
    found = shutil.which(words[0]) or shutil.which(words[0], path=beside)
    return [found, *words[1:]] if found else []


def _list_options(args, task_vars):
    matrices = _as_list(args["matrix"])
    if not matrices:
        raise AnsibleActionFail("say what must reach what, such as -e matrix=dce")
    for matrix in matrices:
        yield from ("--matrix", str(matrix))
    for path in _as_list(args.get("inventory")) or task_vars["ansible_inventory_sources"]:
        if "," in path and not os.path.exists(path):
            raise AnsibleActionFail(
                f"the inventory {path} is a list of hosts and no file, which netprobe cannot read: "
                "give -i FILE, or -e netprobe_inventory=FILE"
            )
        yield from ("--inventory", str(path))
    for name, value in (args.get("set") or {}).items():
        yield from ("--set", f"{name}={','.join(map(str, _as_list(value)))}")
    yield from map(str, _as_list(args.get("options")))


def _as_list(value):
    if value is None or value == "":
        return []
    return list(value) if isinstance(value, (list, tuple)) else [_as_word(value)]


def _as_word(value):
    return str(value).lower() if isinstance(value, bool) else value
