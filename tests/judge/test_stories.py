"""What the story of a silent flow leaves of the places, and that it never names a wrong one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from netprobe.model.evidence import Icmp, Listener, Outcome, Witness
from netprobe.model.result import Place, Result
from netprobe.model.story import Sight, Story, StoryPlace

from .test_verdict import evidence, one

SIGHTS: dict[str, Sight] = {"y": "yes", "n": "no", "?": "unknown"}
# Where a packet is stopped, and what a recorder at each place sees then.
ENDS: tuple[tuple[str, Place], ...] = (
    ("nnnnnn", "source"),
    ("ynnnnn", "path"),
    ("yynnnn", "destination"),
    ("yyynnn", "destination"),
    ("yyyynn", "return-path"),
    ("yyyyyn", "source"),
)
OUTCOMES = {
    "tcp": Outcome("connect", "no-answer", attempts=5, packets=5),
    "udp": Outcome("answer", "no-answer", attempts=5, packets=5),
    "icmp": Outcome("answer", "no-answer", attempts=5, packets=5),
}


def tell(letters: str) -> Story:
    """The story with these sights, one letter a place."""
    places = [StoryPlace(SIGHTS[one]) for one in letters]
    return Story(places[0], places[1], places[2], places[3], places[4], places[5])


def judged(protocol: str, letters: str, *, left: bool | None = None) -> Result:
    """The result of a silent flow with this story; ``left``: what the source's kernel says."""
    story = tell(letters)
    outcome = replace(OUTCOMES[protocol], left_host=left)
    ours = protocol != "icmp"
    witness = Witness(socket=letters[2] == "y") if ours else None
    listener = Listener("ours" if ours else "unknown")
    return one(evidence(outcome, protocol, listener=listener, witness=witness, story=story))


@pytest.mark.parametrize("protocol", OUTCOMES)
@pytest.mark.parametrize(("letters", "place"), ENDS)
def test_the_first_no_after_a_yes_is_the_place(protocol: str, letters: str, place: Place) -> None:
    """Two recorders split a path into six places; echo has no socket of ours."""
    if protocol == "icmp":
        letters = f"{letters[:2]}?{letters[3:]}"
    result = judged(protocol, letters)

    assert (result.verdict, result.where) == ("blocked", (place,))


@pytest.mark.parametrize(
    ("letters", "refused"), [("yynnnn", False), ("yyn?nn", False), ("yy??nn", True)]
)
def test_a_cause_that_a_recorder_excludes_is_not_offered(letters: str, refused: bool) -> None:
    """An answer that never left cannot be refused on its way."""
    result = judged("tcp", letters)

    assert "its own firewall drops it" in result.because
    assert ("something on the way back refuses the answer" in result.because) is refused
    assert ("return-path" in result.where) is refused


def list_views(letters: str) -> Iterator[str]:
    """Every story that recorders with less to see tell of the same packets."""
    for hidden in itertools.product((False, True), repeat=5):
        yield "".join(
            "?" if hide else seen for hide, seen in zip((*hidden, False), letters, strict=True)
        )


def is_possible(protocol: str, letters: str, view: str) -> bool:
    """Whether recorders can miss so much and the flow still be silent."""
    if protocol == "tcp":
        return True
    # Where the own firewall drops a datagram or an echo request, the send fails: the source then
    # tells no silence, and our listener tells the errno of its answer.
    if (letters[0], view[0]) == ("n", "?") or (protocol, letters[3], view[3]) == ("udp", "n", "?"):
        return False
    # Our listener always has a word on datagrams.
    return protocol == "icmp" or view[2] != "?"


@pytest.mark.parametrize("protocol", OUTCOMES)
@pytest.mark.parametrize(("letters", "place"), ENDS)
def test_who_saw_less_never_names_a_wrong_place(protocol: str, letters: str, place: Place) -> None:
    """Without packet sockets answers may be vaguer, never wrong."""
    for view in list_views(letters):
        if not is_possible(protocol, letters, view):
            continue
        result = judged(protocol, view)
        assert place in result.where, view
        assert result.verdict == "blocked", view


@pytest.mark.parametrize("protocol", ["tcp", "icmp"])
@pytest.mark.parametrize(("letters", "place"), ENDS)
def test_more_to_see_never_leaves_more_places(protocol: str, letters: str, place: Place) -> None:
    """A recorder only helps."""
    if protocol == "icmp":
        letters = f"{letters[:2]}?{letters[3:]}"
    least = set(judged(protocol, letters).where)
    most = set(judged(protocol, "?????n").where)

    for view in list_views(letters):
        if not is_possible(protocol, letters, view):
            continue
        assert least <= set(judged(protocol, view).where) <= most | {"source"}, view


def test_a_router_that_rejects_is_on_the_way_whatever_got_past_it() -> None:
    """Of two equal ways it is on one, and other packets of the flow took the other."""
    rejected = replace(OUTCOMES["udp"], failure="host-unreachable",
                       icmp=Icmp(3, 13, "10.0.0.254", "router"))  # fmt: skip

    result = one(evidence(rejected, "udp", listener=Listener("ours"), story=tell("yy?yn?")))

    assert (result.reason, result.where) == ("admin-prohibited", ("path",))


@pytest.mark.parametrize(
    ("letters", "left", "where"),
    [
        # The recorder's word counts more than the kernel's counters.
        ("y?????", False, ("destination", "path", "return-path", "source")),
        ("n?????", True, ("source",)),
        # Where there is none, the kernel's.
        ("??????", False, ("source",)),
    ],
)
def test_whether_a_packet_left_is_the_recorders_word(
    letters: str, left: bool, where: tuple[Place, ...]
) -> None:
    """Else the kernel's, which says of TCP how many SYNs were sent."""
    assert judged("tcp", letters, left=left).where == where


def test_an_answer_by_our_listener_passes_whatever_recorders_say() -> None:
    """A nonce is proof."""
    nonce = Outcome("answer", None, answer="nonce")
    for letters in ("nnnnny", "ynnnny", "??????"):
        result = one(evidence(nonce, listener=Listener("ours"), story=tell(letters)))
        assert (result.verdict, result.where) == ("pass", ())


@pytest.mark.parametrize("protocol", ["tcp", "udp", "ipproto/4"])
def test_an_answer_that_our_listener_knows_nothing_of_is_a_contradiction(protocol: str) -> None:
    """Its log is complete: one of the two agents is wrong, and both are named."""
    nonce = Outcome("answer", None, answer="nonce")
    ours = Listener("ours")

    doubted = one(evidence(nonce, protocol, listener=ours, witness=Witness()))
    assert (doubted.verdict, doubted.reason) == ("inconclusive", "agents-disagree")
    assert doubted.where == ("destination", "source")
    assert "a's agent says" in doubted.because
    assert "b's agent that nothing came" in doubted.because
    # The listener's agent could not be asked any more, or it did note it.
    for witness in (None, Witness(socket=True)):
        assert one(evidence(nonce, protocol, listener=ours, witness=witness)).verdict == "pass"


def test_what_did_not_pass_carries_its_story() -> None:
    """Also where no recorder ran: then its places are unknown. A pass needs none."""
    silent = OUTCOMES["tcp"]
    opened = replace(silent, failure=None, answer="nonce")

    assert judged("tcp", "ynnnnn").story == tell("ynnnnn")
    assert one(evidence(silent, "tcp")).story == Story()
    assert (
        one(evidence(opened, "tcp", listener=Listener("ours"), story=tell("yyyyyy"))).story is None
    )
    assert one(evidence(None, "tcp")).story is None


SAID_NOTHING = Outcome("answer", None, answer="silent", attempts=8)
SENT_NS = 1_000_000_000


def judge_nonce(letters: str, failure: str | None, answered_ns: int | None = None) -> Result:
    """The result of a connection that opened, and whose request was not answered in time."""
    story = tell(letters)
    story = replace(
        story,
        source_out=replace(story.source_out, first_ns=SENT_NS),
        source_in=replace(story.source_in, first_ns=answered_ns),
    )
    witness = Witness(socket=letters[2] == "y", reply_failure=failure)
    listener = Listener("ours")
    return one(evidence(SAID_NOTHING, "tcp", listener=listener, witness=witness, story=story))


def test_an_answer_that_is_made_too_late_is_no_firewalls_act() -> None:
    """Whose peer has given up has no connection to answer on; a firewall lets that send succeed."""
    for failure in ("reset", "broken-pipe"):
        late = judge_nonce("yyynnn", failure)
        assert (late.verdict, late.reason) == ("inconclusive", "machine-busy"), failure
    dropped = judge_nonce("yyynnn", None)
    assert (dropped.verdict, dropped.where) == ("blocked", ("destination",))


def test_an_answer_that_comes_when_nobody_waits_is_no_firewalls_act() -> None:
    """The source's firewall drops answers that come in time, and nothing else does so there."""
    late = judge_nonce("yyyyyn", None, SENT_NS + 26_000_000_000)
    assert (late.verdict, late.reason) == ("inconclusive", "machine-busy")
    dropped = judge_nonce("yyyyyn", None, SENT_NS + 3_000_000)
    assert (dropped.verdict, dropped.where) == ("blocked", ("source",))
