"""Commands that print our own words unasked: one host without an agent, with a reason."""

from __future__ import annotations

import pytest

from netprobe.errors import AgentError
from netprobe.vantage.launch import Launcher, start_agent
from netprobe.vantage.runtime.cache import Runtimes
from netprobe.vantage.runtime.file import Runtime, RuntimeManifest
from tests.vantage.support import HOST, KEY, command

SENT = Runtime(RuntimeManifest("x86_64", "3.11", "here", ()), b"x", 1)


@pytest.mark.parametrize("sudo", [False, True])
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo NETPROBE-SUDO", "no-vantage"),
        ("echo NETPROBE-SUDO >&2; exit 3", "no-vantage"),
        # Also the Python that was sent has not been asked for.
        ("echo NETPROBE-NO-PYTHON x86_64", "no-vantage"),
        ("echo NETPROBE-NO-PYTHON toaster", "no-python"),
        # It ends before it has read the agent.
        ("echo NETPROBE-READY", "no-vantage"),
        ("echo NETPROBE-READY; echo NETPROBE-HELLO; exit 3", "no-vantage"),
        ("echo NETPROBE-SEND", "no-vantage"),
    ],
)
async def test_a_word_of_ours_is_no_word_of_the_script(
    script: str, reason: str, sudo: bool
) -> None:
    """Banners may print anything: what is not waited for is nothing but text."""
    host = command("sh", "-c", script, sudo=sudo)
    with pytest.raises(AgentError) as caught:
        async with Launcher(retry_s=0, runtimes=Runtimes([SENT])) as launcher:
            await start_agent(host, HOST, key=KEY, launcher=launcher)

    assert caught.value.reason == reason
    assert str(caught.value).startswith("me: ")
