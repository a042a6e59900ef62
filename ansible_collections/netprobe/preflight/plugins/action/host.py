# Copyright: (c) 2026, The netprobe authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One step of a check on one host: a shell command with orders as its input, answers to a file."""

from __future__ import annotations

import shlex
import tempfile

from ansible import constants as C
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.netprobe.preflight.plugins.plugin_utils.engine_folder import (
    STEPS,
    EngineFolder,
    cut_words,
)
from ansible_collections.netprobe.preflight.plugins.plugin_utils.watch import HostFailed, Watch

# Without input ssh would open a terminal, which changes what is printed and ends what runs on.
NO_ORDERS = b"\n"
FIRST_STEP = STEPS[0]
WINDOWS = ("powershell", "cmd")


class ActionModule(ActionBase):
    """Runs a command of the engine folder; no module, and no Python on the host."""

    _requires_connection = True
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp=None, task_vars=None):
        """Give a few numbers; what the host printed goes to a file, and never through callbacks."""
        result = super().run(tmp, task_vars)
        step, host = self._task.args["step"], task_vars["inventory_hostname"]
        if self._task.check_mode:
            return dict(result, skipped=True, skip_reason="check mode: nothing is sent")
        folder = EngineFolder(self._task.args["folder"])
        reason = self._find_reason_to_skip(folder, host, step)
        if reason:
            return dict(result, skipped=True, skip_reason=reason)
        try:
            with Watch(step, folder.limit_s(step), folder.most_bytes) as watch:
                done = self._run_marked(folder, host, step, forks=_find_forks(task_vars))
                watch.check_size(len(done["stdout"]))
        except AnsibleConnectionFailure as error:
            folder.add_error(host, f"unreachable: {_first_words(error)}")
            raise AnsibleConnectionFailure(cut_words(_first_words(error))) from None
        except AnsibleError as error:
            folder.add_error(host, _first_words(error))
            raise
        except HostFailed as error:
            folder.add_error(host, str(error))
            return dict(result, failed=True, msg=str(error))
        folder.add_answer(host, done["stdout"])
        result.update(changed=False, step=step, rc=done["rc"], bytes=len(done["stdout"]))
        if done["rc"]:
            words = _last_line(done["stderr"]) or _last_line(done["stdout"]) or "it said nothing"
            folder.add_error(host, f"{step} ended with status {done['rc']}: {words}")
            result.update(failed=True, msg=folder.error(host))
        return result

    def _run_marked(self, folder, host, step, forks):
        """Run a step, or what is to be run instead; mark what may go on, and what does no more."""
        self._silence_s = folder.silence_s(step, forks)
        if step == FIRST_STEP:
            folder.add_mark(host, "begun")
        try:
            done = self._run_step(folder, host, step)
            instead = folder.instead(step, done["rc"])
            return self._run_step(folder, host, instead) if instead else done
        finally:
            if step in (folder.last, folder.early):
                folder.add_mark(host, "ended")

    def _find_reason_to_skip(self, folder, host, step):
        if step == folder.early:
            return "" if folder.may_go_on(host) else "nothing goes on on this host"
        if step == folder.last:  # whatever happened since: what was started must end
            return "" if folder.has_answer(host) else "nothing was started on this host"
        if step not in folder.steps(host) or int(self._task.args.get("round", 1)) != folder.round:
            return "nothing is asked of this host"
        return folder.error(host)

    def _run_step(self, folder, host, step):
        if getattr(self._connection._shell, "SHELL_FAMILY", "sh") in WINDOWS:
            raise AnsibleActionFail("this is a Windows host, where netprobe has no agent")
        command = folder.command(host, step, self._silence_s)
        orders = folder.orders(host, step)
        if self._connection.has_pipelining:
            return self._low_level_execute_command(command, in_data=orders or NO_ORDERS)
        if not orders:
            return self._low_level_execute_command(f"{command} </dev/null")
        return self._run_from_file(command, orders)

    def _run_from_file(self, command, orders):
        """Run a command over a connection that carries no input: the orders go ahead as a file."""
        folder = self._make_tmp_path()
        try:
            remote = self._connection._shell.join_path(folder, "orders")
            with tempfile.NamedTemporaryFile(dir=C.DEFAULT_LOCAL_TMP) as file:
                file.write(orders)
                file.flush()
                self._transfer_file(file.name, remote)
            self._fixup_perms2((folder, remote))
            return self._low_level_execute_command(f"{command} <{shlex.quote(remote)}")
        finally:
            self._remove_tmp_path(folder)


def _find_forks(task_vars):
    return max(1, int(task_vars.get("ansible_forks") or C.DEFAULT_FORKS))


def _first_words(error):
    return str(getattr(error, "message", None) or error)


def _last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""
