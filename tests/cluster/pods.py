"""Hosts whose results come by pages, for tests of both ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from netprobe.agent.batch.pages import PageResults
from netprobe.agent.batch.results import HostClock
from netprobe.agent.batch.script import Script
from netprobe.batch.results import HostRecording
from netprobe.batch.script import HostScript

LARGE = 4096


def keep(script: HostScript, recording: HostRecording) -> PageResults:
    """What a host keeps that has found what a recording says."""
    results = PageResults(Script(script.start, list(script.phases)), HostClock())
    messages: list[Any] = [recording.hello, *recording.marks]
    for order in recording.orders:
        messages += [order, *recording.answers.get(order.id, ())]
    for message in messages:
        results.add(message)
    return results


def make_pages(
    script: HostScript, recording: HostRecording, limits: Sequence[int] = (LARGE,)
) -> list[str]:
    """The messages of a host's containers."""
    return [page.decode("ascii") for page in keep(script, recording).make_pages(list(limits))]
