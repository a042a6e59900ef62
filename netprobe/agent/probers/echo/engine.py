"""ICMP echo probes: one socket a family and source address serves all destinations.

Wide first: every destination of an order is asked once before any is asked again. Packets go in
chunks, and what came is read after each: a round trip may look longer by what its chunk takes,
some 0.2 ms (0.3 in big orders, see ``mmsg``), and buffers stay small. Of those that have not
answered yet no more than WINDOW are young, so a path sees no flood.
"""

from collections import deque
from functools import lru_cache
from typing import Any, Deque, Dict, List, Optional, Sequence, Tuple

from ...core.pace import answers_of
from ...core.pump import SLICE_S, TICK_S, Batch, Pump, Window, short_for_long
from ...net.errqueue import QueuedError, drain
from ...net.icmp import ECHO_REPLY, quoted_sequence
from ...wire import replies
from ...wire.failures import (
    HOST_UNREACHABLE,
    MESSAGE_TOO_LONG,
    NO_ANSWER,
    NO_PERMISSION,
    is_transient,
    name_of,
)
from ..datagram.engine import DEAD_AFTER_S, PAUSE_S, SEND_TRIES, WINDOW, waited_s
from ..datagram.orders import REPEAT_AT, TRIES
from ..outcomes import Kind, kind
from .orders import Sweep, Volley, pick
from .ping_program import PingProgram, find
from .sockets import WIDE_CHUNK, Heard, Shared, Sockets, read_raw

CHUNK = 32
# A chunk that took longer to send was interrupted by other processes.
STEADY_S = 0.02
# What the kernel says where the address is wrong; anything else that keeps us from a socket is that
# we may not have one.
ADDRESS_ERRORS = frozenset(("address-not-available", "family-not-supported"))


class EchoEngine:
    """All echo orders of the agent."""

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self.now = agent.loop.now
        self._answers = answers_of(agent)
        self._orders: Dict[int, Sweep] = {}
        self._queue: Deque[Sweep] = deque()
        self._pump = Pump(agent.loop, self._run)
        self._window = Window(WINDOW)
        self._pause_until = 0.0
        self._sockets = Sockets(agent.loop, self._ready)
        self._program = PingProgram(agent, self._end)

    # Orders

    def submit(self, message: Dict[str, Any]) -> None:
        """Start an order; by the ``ping`` program where this process may open no socket."""
        sweep = Sweep(self.agent, message)
        self._orders[sweep.id] = sweep
        self._pump.wake(0.0)
        try:
            self._sockets.share(sweep)
        except OSError as error:
            self._without_socket(sweep, error)
            return
        self._enqueue(sweep)

    def cancel(self, order_id: int) -> bool:
        """End an order early; whether it was one of this engine."""
        sweep = self._orders.get(order_id)
        if sweep is None:
            return False
        self._program.cancel(sweep)
        for place in list(sweep.out):
            self._leave(sweep, place)
        self._finish(sweep, True)
        return True

    def resume(self) -> None:
        """The agent's output has drained: new probes may start again."""
        if self._queue:
            self._pump.wake(0.0)
        self._program.resume()

    def close(self) -> None:
        """Close every socket and end every process of ours; what was out is lost."""
        self._orders = {}
        self._queue.clear()
        self._pump.stop()
        self._program.close()
        self._sockets.close()

    def _without_socket(self, sweep: Sweep, error: OSError) -> None:
        name = name_of(error.errno)
        if name not in ADDRESS_ERRORS and not is_transient(error.errno):
            if find("ping") is not None:
                self._program.submit(sweep)
                return
            name = NO_PERMISSION
        for place in range(len(sweep.addresses)):
            self._end(sweep, place, kind("bind", name))

    def _finish(self, sweep: Sweep, cancelled: bool = False) -> None:
        sweep.outcomes.flush()
        if sweep.queued:
            sweep.queued = False
            self._queue.remove(sweep)
        self._sockets.release(sweep)
        del self._orders[sweep.id]
        self.agent.send({"t": "done", "id": sweep.id, "cancelled": cancelled})

    def _enqueue(self, sweep: Sweep) -> None:
        if not sweep.queued:
            sweep.queued = True
            self._queue.append(sweep)

    # Sending

    def _run(self) -> None:
        """Ask whom there is to ask, ask silence again, end what has waited long enough."""
        if not self._launch_all():
            self._pump.wake(0.0)
            return
        for shared in self._sockets.all():
            # What arrived while this process did not run is no silence.
            self._read_errors(shared)
            self._read(shared)
        now = self.now()
        self._window.age(now)
        may_expire = self._pump.may_expire(now)
        for sweep in list(self._orders.values()):
            for place in list(sweep.out):
                self._look_after(sweep, place, now, may_expire)
            sweep.outcomes.flush()
        if self._orders:
            self._pump.wake(TICK_S)

    def _launch_all(self) -> bool:
        """Start what may start; False where this turn's time is over before that."""
        until = self.now() + SLICE_S
        while self._launch():
            if self.now() > until:
                return False
        return True

    def _launch(self) -> bool:
        """Start the next few destinations of one order; False where nothing may start now."""
        room = self._window.room()
        now = self.now()
        if room <= 0 or not self._queue or now < self._pause_until or not self.agent.may_start():
            return False
        sweep = self._queue.popleft()
        chunk = CHUNK if sweep.shared.mmsg is None else WIDE_CHUNK
        count = self.agent.rate.take(min(room, chunk), now)
        places = sweep.take(count)
        self.agent.rate.give_back(count - len(places))
        sweep.queued = len(places) == count
        if sweep.queued:
            self._queue.append(sweep)
        if places:
            self._start(sweep, places, now)
        return bool(count)

    def _start(self, sweep: Sweep, places: Sequence[int], now: float) -> None:
        """The first packet of a look for some destinations."""
        batch: Batch = [len(places), 1]
        self._window.add(batch, now)
        sweep.begin(places, batch, now)
        shared = sweep.shared
        sent = self._send_all(sweep, shared, places)
        for place in places[sent:]:
            if place in sweep.out:
                sweep.attempt[place] -= 1  # it was not sent
                self._ask_again(sweep, place)
        self._read(shared)

    def _send_all(self, sweep: Sweep, shared: Shared, places: Sequence[int]) -> int:
        """One packet for each; how many before our own host had no room for more."""
        first = shared.numbers(len(places))
        requests = sweep.requests(places, shared.number, first)
        volley = Volley(sweep, first, places, requests, self.now())
        sent = shared.send(volley)
        took_s = self.now() - volley.begun
        # Where the process stood still meanwhile round trips are rather too long than too short.
        volley.step_s = took_s / (sent or 1) if took_s < STEADY_S else 0.0
        shared.note(volley)
        if sent:
            sweep.short_since = None
        if sent < len(places):
            self._read_errors(shared)
            return self._send_each(shared, volley, sent)
        return sent

    def _send_each(self, shared: Shared, volley: Volley, sent: int) -> int:
        """As ``_send_all``, one by one, because one of them had an error."""
        sweep = volley.sweep
        for at, place in enumerate(volley.places[sent:], sent):
            if place not in sweep.out:
                continue  # an error of an earlier look came while the others were sent
            number = volley.first + at
            single = Volley(sweep, number, [place], volley.request(number), self.now())
            shared.note(single)
            if not self._send(shared, single):
                return at
        return len(volley.places)

    def _send(self, shared: Shared, single: Volley) -> bool:
        """Send one packet; False where our own host has no room for more just now."""
        sweep, place, (packet,) = single.sweep, single.places[0], single.packets()
        number: Optional[int] = None
        for _ in range(SEND_TRIES):
            try:
                shared.sock.sendto(packet, sweep.sockaddr(place))
                sweep.short_since = None
                return True
            except OSError as error:
                number = error.errno
            if is_transient(number):
                if short_for_long(sweep, self.now()):
                    break
                self._pause_until = self.now() + PAUSE_S
                return False
            # It may be the error of another packet, reported here; then the next try is clean. If
            # our own firewall rejected this one, the error queue knows better than errno.
            self._read_errors(shared)
            self._read(shared)
            if place not in sweep.out:
                return True
        self._end(sweep, place, kind("send", name_of(number), None, False))
        return True

    def _ask_again(self, sweep: Sweep, place: int) -> None:
        """Ask when its turn comes."""
        self._leave(sweep, place)
        sweep.again.append(place)
        self._enqueue(sweep)

    # Repetition and silence

    def _look_after(self, sweep: Sweep, place: int, now: float, may_expire: bool) -> None:
        """Send the next packet of a look if it is due, or end the look."""
        if place not in sweep.out:
            return
        age_s = now - sweep.since[place]
        look_s = self._look_s(sweep, place)
        tries = sweep.tries[place]
        if age_s >= look_s:
            if may_expire:
                self._silent(sweep, place)
        elif tries < TRIES and age_s >= look_s * REPEAT_AT[tries - 1]:
            sweep.tries[place] += 1
            sweep.attempt[place] += 1
            self._send_all(sweep, sweep.shared, [place])

    def _look_s(self, sweep: Sweep, place: int) -> float:
        if sweep.look[place] > 1:
            return sweep.look_ms / 1000.0
        return self._answers.first_look_s(sweep.addresses[place], sweep.first_ms, sweep.look_ms)

    def _silent(self, sweep: Sweep, place: int) -> None:
        if sweep.look[place] < sweep.looks:
            sweep.look[place] += 1
            self._ask_again(sweep, place)
            return
        what = sweep.dead.pop(place, kind("answer", NO_ANSWER))
        # Attempts are numbered over all looks: the last number is how many packets went.
        self._end(sweep, place, what, packets=sweep.attempt[place])

    # Hearing

    def _ready(self, shared: Shared) -> None:
        self._read_errors(shared)
        self._read(shared)
        if self._queue and not self._launch_all():
            self._pump.wake(0.0)

    def _read(self, shared: Shared) -> None:
        complete = shared.mmsg is not None and self._read_many(shared)
        while not complete:
            heard: List[Heard] = []
            complete = shared.hear(heard)
            self._take(shared, heard)
            if not complete:
                # The errno of an error that is in the queue; reading it here has cleared it.
                self._read_errors(shared)

    def _read_many(self, shared: Shared) -> bool:
        """By one system call; False where there may be more, or an error."""
        count = shared.mmsg.hear()
        if not count:
            return False
        volley = shared.volley_of(shared.mmsg.sequence())
        if volley is None or not self._take_whole(volley, shared.mmsg.ttl_of_all(count, volley)):
            self._take(shared, list(read_raw(shared.mmsg.packets(count))))
        return bool(count <= WIDE_CHUNK)

    def _take_whole(self, volley: Volley, ttl: Optional[int]) -> bool:
        """Note that a volley has been answered with this TTL, if it was; False where its
        destinations no longer wait together."""
        places = volley.places
        if ttl is None or not volley.whole or volley.batch[0] != len(places):
            return False
        self._window.answered(volley.batch, len(places))
        for place in places:
            del volley.sweep.out[place]
        first_s, step_s = self.now() - volley.begun, volley.step_s
        rtts_s = [first_s - step_s * index for index in range(len(places))]
        self._echoed(volley.sweep, ttl, places, rtts_s)
        return True

    def _take(self, shared: Shared, heard: List[Heard]) -> None:
        """Note whose replies these are."""
        now = self.now()
        reply, volleys = ECHO_REPLY[shared.sock.family], shared.volleys
        known = len(volleys)
        echoes: Dict[Tuple[Sweep, Optional[int]], Tuple[List[int], List[float]]] = {}
        for ttl, sender, type_, sequence, payload in heard:
            # Another program's reply, one to an older packet with this number, or somebody else's
            # word.
            if sequence >= known or type_ != reply:
                continue
            volley = volleys[sequence]
            index = sequence - volley.first
            sweep, place = volley.sweep, volley.places[index]
            if sender != sweep.packed[place] or payload != volley.carried[index]:
                continue
            batch = sweep.out.pop(place, None)
            if batch is not None:
                self._window.answered(batch)
                places, rtts_s = echoes.setdefault((sweep, ttl), ([], []))
                places.append(place)
                rtts_s.append(now - volley.begun - volley.step_s * index)
        for (sweep, ttl), (places, rtts_s) in echoes.items():
            self._echoed(sweep, ttl, places, rtts_s)

    def _echoed(
        self, sweep: Sweep, ttl: Optional[int], places: Sequence[int], rtts_s: List[float]
    ) -> None:
        """These answered, with this TTL."""
        self._answers.learn_many(pick(sweep.addresses, places), rtts_s)
        sweep.end_many(places, _echo(ttl), rtts_s)
        if not sweep.pending:
            self._finish(sweep)

    def _read_errors(self, shared: Shared) -> None:
        for error in drain(shared.sock):
            # A raw socket hears the errors of every ping of this host: both the quoted sequence
            # and the destination must be ours.
            sequence = quoted_sequence(error.data)
            volley = shared.volley_of(sequence) if sequence is not None else None
            if sequence is None or volley is None:
                continue
            sweep, place = volley.sweep, volley.place(sequence)
            if error.to == sweep.addresses[place] and place in sweep.out:
                self._error(sweep, place, error, volley.sent_at(sequence))

    def _error(self, sweep: Sweep, place: int, error: QueuedError, sent_at: float) -> None:
        """An ICMP error (or one of our own kernel) about a packet of ours."""
        now = self.now()
        name = name_of(error.errno)
        fact = error.fact()
        elapsed_s = waited_s(now, sweep.since[place], sent_at)
        elapsed_ms = round(elapsed_s * 10) * 100 if name == HOST_UNREACHABLE else None
        mtu = error.info if name == MESSAGE_TOO_LONG else None
        what = kind("answer", name, fact, elapsed_ms=elapsed_ms, mtu=mtu)
        at_host = fact is not None and fact[2] == sweep.addresses[place]
        rtt_s = now - sent_at if at_host else None
        if rtt_s is not None:
            self._answers.learn(sweep.addresses[place], rtt_s)
        more = sweep.look[place] < sweep.looks
        if name == HOST_UNREACHABLE and elapsed_s > DEAD_AFTER_S and more:
            sweep.dead[place] = what
            self._silent(sweep, place)
            return
        self._end(sweep, place, what, rtt_s)

    # Ending

    def _end(
        self,
        sweep: Sweep,
        place: int,
        what: Kind,
        rtt_s: Optional[float] = None,
        packets: Optional[int] = None,
    ) -> None:
        """The final outcome of one destination."""
        batch = sweep.out.pop(place, None)
        if batch is not None:
            self._window.answered(batch)
        sweep.end(place, what, rtt_s, packets)
        if not sweep.pending:
            self._finish(sweep)

    def _leave(self, sweep: Sweep, place: int) -> None:
        batch = sweep.out.pop(place, None)
        if batch is not None:
            self._window.answered(batch)


@lru_cache(maxsize=256)
def _echo(ttl: Optional[int]) -> Kind:
    return kind("answer", answer=replies.ECHO, ttl=ttl)
