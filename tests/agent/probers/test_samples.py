"""Samples of a way, over loopback."""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest

from netprobe.agent.core.loop import READ
from netprobe.agent.probers.samples import Sampler
from netprobe.agent.wire.quality_messages import SampleOrder, SamplesTaken
from netprobe.agent.wire.templates import read_nonce
from tests.agent.rig import HOST, KEY, PLAIN, Agent
from tests.patience import PATIENCE_S
from tests.ports import free_port

ADDRESSES = {4: "127.0.0.1", 6: "::1"}


def order(proto: str, dst: str, port: int, **more: Any) -> SampleOrder:
    usual = SampleOrder(
        1, proto, dst, None, port, template=1, number=77, host=HOST, samples=20, interval_ms=1,
        timeout_ms=3000,
    )  # fmt: skip
    return usual._replace(**more)


def take(agent: Agent, asked: SampleOrder) -> SamplesTaken:
    """Carry out an order, and give its answer."""
    agent.part(Sampler).submit(asked)
    late = agent.loop.call_later(PATIENCE_S, agent.loop.stop)

    def look() -> None:
        if agent.sent(SamplesTaken):
            agent.loop.stop()
        else:
            agent.loop.call_later(0.01, look)

    agent.loop.call_later(0, look)
    agent.loop.run()
    late.cancel()
    (told,) = agent.sent(SamplesTaken)
    assert isinstance(told, SamplesTaken)
    return told


def _send_to(sock: socket.socket, data: bytes, sender: Any) -> None:
    sock.sendto(data, sender)


def answer_datagrams(
    agent: Agent,
    address: str,
    port: int,
    change: Callable[[int, bytes], list[bytes]],
    after_s: float = 0,
) -> socket.socket:
    """Answer each nonce as a listener does; ``change`` makes of an attempt's answer what goes."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.bind((address, port))

    def read(_events: int) -> None:
        data, sender = sock.recvfrom(2048)
        nonce = PLAIN.recognise(KEY, data)
        assert nonce is not None
        reply = PLAIN.reply(KEY, nonce, HOST, port, data)
        for one in change(read_nonce(nonce).attempt, reply):
            agent.loop.call_later(after_s, partial(_send_to, sock, one, sender))

    agent.loop.watch(sock.fileno(), READ, read)
    return sock


@pytest.mark.parametrize("family", [4, 6])
def test_each_connection_is_a_sample(family: int) -> None:
    """The listener gets as many as were ordered, and each is reset."""
    port = free_port(ADDRESSES[family])
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    with socket.create_server((ADDRESSES[family], port), family=kind, backlog=64) as server:
        told = take(Agent(), order("tcp", ADDRESSES[family], port))
        assert (len(told.rtts_us), told.lost, told.failure) == (20, 0, None)
        server.setblocking(False)
        for _ in range(20):
            with server.accept()[0] as taken:
                taken.setblocking(False)
                with pytest.raises(ConnectionResetError):
                    taken.recv(1)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_refused_connection_is_no_loss() -> None:
    """None of them is lost, and the reason is told."""
    told = take(Agent(), order("tcp", "127.0.0.1", free_port()))
    assert told == SamplesTaken(1, [], 0, "refused")


@pytest.mark.parametrize("family", [4, 6])
def test_each_datagram_is_a_sample(family: int) -> None:
    """Only the genuine answer of the listener that was meant counts, once."""
    agent, port = Agent(), free_port(ADDRESSES[family], socket.SOCK_DGRAM)

    def change(attempt: int, reply: bytes) -> list[bytes]:
        if attempt % 4 == 0:
            return []
        forged = reply[:-1] + bytes([reply[-1] ^ 1])
        return [forged] if attempt % 4 == 1 else [reply, reply]

    with answer_datagrams(agent, ADDRESSES[family], port, change):
        told = take(agent, order("udp", ADDRESSES[family], port))
    assert (len(told.rtts_us), told.lost, told.failure) == (10, 10, None)


def test_a_datagram_of_another_listener_is_lost() -> None:
    """Another host's answer tells nothing of this way."""
    agent, port = Agent(), free_port("127.0.0.1", socket.SOCK_DGRAM)
    with answer_datagrams(agent, "127.0.0.1", port, lambda _, reply: [reply]):
        told = take(agent, order("udp", "127.0.0.1", port, host=HOST + 1, timeout_ms=300))
    assert (told.rtts_us, told.lost) == ([], 20)


def test_a_late_answer_is_lost() -> None:
    """What comes after the time-out was waited for in vain, also before the next sample."""
    agent, port = Agent(), free_port("127.0.0.1", socket.SOCK_DGRAM)
    with answer_datagrams(agent, "127.0.0.1", port, lambda _, reply: [reply], after_s=0.05):
        asked = order("udp", "127.0.0.1", port, samples=2, interval_ms=300, timeout_ms=30)
        told = take(agent, asked)
    assert (told.rtts_us, told.lost) == ([], 2)


class PausedWay(NamedTuple):
    """What became of 20 samples, and how many datagrams came to the listener."""

    told: SamplesTaken
    asked: int


def sample_with_pauses(
    *pauses: tuple[float, float], answers: Callable[[int], bool] = bool, **more: Any
) -> PausedWay:
    """Take samples of another process's listener, which answers after 0.1 s; the agent's loop
    stands still from some seconds on for some seconds."""
    agent, asked = Agent(), []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]

        def serve() -> None:
            while (found := sock.recvfrom(2048))[0] != b"over":
                data, sender = found
                nonce = PLAIN.recognise(KEY, data)
                assert nonce is not None
                asked.append(place := read_nonce(nonce).attempt)
                reply = PLAIN.reply(KEY, nonce, HOST, port, data)
                if answers(place):
                    threading.Timer(0.1, _send_to, (sock, reply, sender)).start()

        serving = threading.Thread(target=serve)
        serving.start()
        for after_s, lasts_s in pauses:
            agent.loop.call_later(after_s, partial(time.sleep, lasts_s))
        told = take(agent, order("udp", "127.0.0.1", port, **{"interval_ms": 10} | more))
        sock.sendto(b"over", sock.getsockname())
        serving.join()
        time.sleep(0.2)  # the last answers go
    return PausedWay(told, len(asked))


def test_a_pause_of_this_process_is_no_slow_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no kernel says when an answer came, it is asked for again."""
    monkeypatch.setattr("netprobe.agent.probers.samples.SO_TIMESTAMPNS", 1 << 20)
    way = sample_with_pauses((0.05, 0.6))
    assert (len(way.told.rtts_us), way.told.lost, way.told.failure) == (20, 0, None)
    assert way.asked > 20


def test_what_a_kernel_says_counts_beside_a_pause() -> None:
    """It came in time, whenever this process read it: none is asked for again."""
    way = sample_with_pauses((0.05, 0.6), timeout_ms=400)
    assert (len(way.told.rtts_us), way.told.lost, way.asked) == (20, 0, 20)


def test_a_sample_that_a_pause_cut_short_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that had its time beside the pause is lost."""
    monkeypatch.setattr("netprobe.agent.core.pauses.MOST_LONGER_S", 0)
    way = sample_with_pauses((0.05, 0.6), answers=lambda place: place > 1, timeout_ms=400)
    assert (len(way.told.rtts_us), way.told.lost) == (20, 0)
    assert way.asked > 20
    # Long enough for the listener on a busy machine: it answers when its threads have a turn.
    way = sample_with_pauses(answers=lambda place: place > 1, timeout_ms=2000)
    assert (len(way.told.rtts_us), way.told.lost, way.asked) == (19, 1, 20)


def test_a_process_that_never_runs_for_long_has_no_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks at most twice as often as it should, and says that it stood still."""
    monkeypatch.setattr("netprobe.agent.probers.samples.SO_TIMESTAMPNS", 1 << 20)
    pauses = [(0.02 + turn * 0.3, 0.3) for turn in range(12)]
    way = sample_with_pauses(*pauses, samples=3, interval_ms=1)
    assert way.told.failure == "stood-still"
    assert way.asked == 7


@pytest.mark.needs("echo sockets")
@pytest.mark.parametrize("family", [4, 6])
def test_each_echo_is_a_sample(family: int) -> None:
    """The kernel answers."""
    told = take(Agent(), order("icmp", ADDRESSES[family], 0))
    assert (len(told.rtts_us), told.lost) == (20, 0)


def test_no_right_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose kernel opens no socket for echo says so, and asks nothing."""

    def refuse(_target: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr("netprobe.agent.probers.samples.open_echo", refuse)
    told = take(Agent(), order("icmp", "127.0.0.1", 0))
    assert told == SamplesTaken(1, [], 20, "no-permission")


def test_the_rate_of_the_agent_holds() -> None:
    """A limit of probes a second is one of samples, too: ten a second take half a second for six
    at least."""
    agent, port = Agent(), free_port("127.0.0.1", socket.SOCK_DGRAM)
    agent.rate.limit(10)
    begun = agent.loop.now()
    with answer_datagrams(agent, "127.0.0.1", port, lambda _, reply: [reply]):
        told = take(agent, order("udp", "127.0.0.1", port, samples=6))
    assert len(told.rtts_us) == 6
    assert agent.loop.now() - begun >= 0.45


def test_nothing_stays_open() -> None:
    """An agent that ends in the middle of an order closes all of its sockets."""
    agent, before = Agent(), len(os.listdir("/proc/self/fd"))
    sampler = agent.part(Sampler)
    for proto in ("tcp", "udp", "icmp"):
        sampler.submit(order(proto, "127.0.0.1", free_port()))
    sampler.close()
    assert len(os.listdir("/proc/self/fd")) == before
