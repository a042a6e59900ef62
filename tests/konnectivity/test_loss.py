"""Loss by chance is told from what is dropped for a reason."""

from __future__ import annotations

from netprobe.konnectivity.loss import FAULT_PERCENT, Losses, Sent, Tried

AT_ONCE, LATE, NEVER = Tried(True, 0), Tried(True, 1), Tried(False, 2)
TORN = Tried(True, 0, torn=True)


def losses(syns: list[Tried], data: list[Tried]) -> Losses:
    """What became of SYNs and of ClientHellos."""
    return Losses(Sent.of(syns), Sent.of(data))


def test_what_gets_through_when_sent_again_is_lost_by_chance() -> None:
    """24 SYNs at once, 13 late, 3 never: of 40 + 13 + 6 SYNs 37 were answered."""
    found = losses([AT_ONCE] * 24 + [LATE] * 13 + [NEVER] * 3, [AT_ONCE] * 25 + [LATE] * 12)
    assert found.percent == round(100 * 22 / 59)
    assert found.percent >= FAULT_PERCENT


def test_answers_that_come_in_pieces_are_lost_on_the_way_back() -> None:
    """Where the server's packets are lost, little of ours is sent again."""
    found = losses([AT_ONCE] * 28 + [LATE] * 12, [AT_ONCE] * 30 + [TORN] * 10)
    assert found.percent == round(100 * 12 / 52)


def test_a_dropped_back_end_of_three_is_no_loss() -> None:
    """Its SYNs are never answered, and nothing else is sent again."""
    assert losses([AT_ONCE] * 27 + [NEVER] * 13, [AT_ONCE] * 27).percent == 0


def test_syns_that_are_balanced_one_by_one_are_no_loss() -> None:
    """A SYN that is sent again meets another back end; what follows is never sent again."""
    assert losses([AT_ONCE] * 27 + [LATE] * 12 + [NEVER], [AT_ONCE] * 39).percent == 0


def test_a_dropped_client_hello_is_no_loss() -> None:
    """Sent again and again, and never answered."""
    assert losses([AT_ONCE] * 40, [NEVER] * 40).percent == 0


def test_packets_that_overtake_each_other_are_no_loss() -> None:
    """Nothing was sent again."""
    assert losses([AT_ONCE] * 40, [AT_ONCE] * 20 + [TORN] * 20).percent == 0


def test_one_late_packet_is_no_loss() -> None:
    """It may be anything."""
    assert losses([AT_ONCE] * 39 + [LATE], [AT_ONCE] * 39 + [LATE]).percent == 0


def test_data_that_is_lost_alone_has_its_own_figure() -> None:
    """A box may drop data by chance and let SYNs pass."""
    assert losses([AT_ONCE] * 40, [AT_ONCE] * 30 + [LATE] * 10).percent == 20


def test_loss_and_a_dropped_back_end_are_loss() -> None:
    """What never opened is more than chance explains, so that it does not count in the figure."""
    found = losses([AT_ONCE] * 15 + [LATE] * 8 + [NEVER] * 17, [AT_ONCE] * 16 + [LATE] * 7)
    assert found.percent == round(100 * 8 / 23)
