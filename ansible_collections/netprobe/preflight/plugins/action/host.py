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

from ansible_collections.netprobe.preflight.plugins.plugin_utils.engine_folder import EngineFolder

# Without input ssh would open a terminal, which changes what is printed and ends what runs on.
NO_ORDERS = b"\n"
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
            done = self._run_step(folder, host, step)
            instead = folder.instead(step, done["rc"])
            if instead:
                done = self._run_step(folder, host, instead)
        except AnsibleConnectionFailure as error:
            folder.add_error(host, f"unreachable: {_first_words(error)}")
            raise
        except AnsibleError as error:
            folder.add_error(host, _first_words(error))
            raise
        folder.add_answer(host, done["stdout"])
        result.update(changed=False, step=step, rc=done["rc"], bytes=len(done["stdout"]))
        if done["rc"]:
            words = _last_line(done["stderr"]) or _last_line(done["stdout"]) or "it said nothing"
            folder.add_error(host, f"{step} ended with status {done['rc']}: {words}")
            result.update(failed=True, msg=folder.error(host))
        return result

    def _find_reason_to_skip(self, folder, host, step):
        if step == folder.last:  # whatever happened since: what was started must end
            return "" if folder.has_answer(host) else "nothing was started on this host"
        if step not in folder.steps(host) or int(self._task.args.get("round", 1)) != folder.round:
            return "nothing is asked of this host"
        return folder.error(host)

    def _run_step(self, folder, host, step):
        if getattr(self._connection._shell, "SHELL_FAMILY", "sh") in WINDOWS:
            raise AnsibleActionFail("this is a Windows host, where netprobe has no agent")
        command, orders = folder.command(host, step), folder.orders(host, step)
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


def _first_words(error):
    return str(getattr(error, "message", None) or error)


def _last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""
