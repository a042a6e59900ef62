"""How flows are probed, and how agents get onto hosts, as options say it."""

from __future__ import annotations

import getpass
import os

from netprobe.cli.asked import (
    LaunchOptions,
    LookOptions,
)
from netprobe.cli.runtime import make_runtimes
from netprobe.errors import RequestError
from netprobe.probe.settings import FORKS, ProbeSettings
from netprobe.vantage.core_dumps import forbid_core_dumps
from netprobe.vantage.launch import Launcher


def settings_of(options: LookOptions, rate: int | None = None, forks: int = FORKS) -> ProbeSettings:
    """Make the probe stage's settings of a verb's options.

    ``rate``: new probes a second over all agents, None: no limit. ``forks``: destinations at once.
    """
    return ProbeSettings(
        timeout_s=options.timeout,
        looks=None if options.retries is None else options.retries + 1,
        rate=rate,
        forks=forks,
        # Where everything is supposed to run, a listener of ours would stand in for a dead service.
        listen=not options.no_listen and not options.live,
        record=not options.no_recorder,
    )


def make_launcher(options: LaunchOptions) -> Launcher:
    """Make the launcher of a verb's agents. Raises RequestError where no password can be asked."""
    runtimes = make_runtimes(options.agent_python)
    return Launcher(become_password=read_become_password(options), runtimes=runtimes)


def read_become_password(options: LaunchOptions) -> str | None:
    """Ask for the sudo password, or take it from the environment. Raises RequestError.

    It leaves the environment, which all programs that are started would inherit.
    """
    password = os.environ.pop("NETPROBE_BECOME_PASSWORD", None)
    if password or options.ask_become_pass:
        forbid_core_dumps()
    if options.ask_become_pass:
        try:
            # Without a terminal, getpass would read the password from an echoing standard input.
            os.close(os.open("/dev/tty", os.O_RDWR))
        except OSError as error:
            words = "--ask-become-pass needs a terminal; set NETPROBE_BECOME_PASSWORD instead"
            raise RequestError(words) from error
        password = getpass.getpass("sudo password: ")
    return password
