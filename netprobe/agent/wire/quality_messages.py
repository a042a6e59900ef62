"""Samples of a way: how long its round trips take, and how many get lost."""

from typing import List, NamedTuple, Optional


class SampleOrder(NamedTuple):
    """Ask one port (``tcp``, ``udp``) or address (``icmp``) again and again, at a steady pace.

    ``tcp``: a connection for each sample, which is reset. ``udp``: a datagram of ``template``,
    whose nonces carry ``number`` as their order; only the listener of ``host`` answers it. An
    answer that takes longer than ``timeout_ms`` is lost.
    """

    id: int
    proto: str
    dst: str
    src: Optional[str]
    port: int
    template: int
    number: int
    host: int
    samples: int
    interval_ms: int
    timeout_ms: int


class SamplesTaken(NamedTuple):
    """The round trips of what was answered, in the order of asking, and how many samples were lost;
    all others were refused. ``failure``: why this host could not ask, the last error that it met
    where nothing was answered, or that it stood still so often that nothing is known."""

    id: int
    rtts_us: List[int]
    lost: int
    failure: Optional[str]
