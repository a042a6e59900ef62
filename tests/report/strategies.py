"""Any result that there could be, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from netprobe.model.codec import result_from_json, result_to_json
from netprobe.model.combinations import ANY, NOWHERE, PRINTED, SAID
from netprobe.model.matrix import WEIGHTS
from netprobe.model.result import PROOFS, VERDICTS, Result
from netprobe.model.story import Story, StoryError, StoryPlace
from netprobe.model.struct_json import Nanoseconds

WORDS = st.text(max_size=12)
NAMES = st.sampled_from(["a", "b", "node-1"])
ENDS = st.sampled_from(["a", "b", "node-1", "fd00::10"])
REASONS = st.sampled_from(["no-response", "icmp 3/7", "unknown-ENODEV", "proxy-407"])
PLACES = ("source", "path", "destination", "return-path", "host", "service")

STORY_PLACES = st.builds(
    StoryPlace,
    seen=st.sampled_from(("yes", "no", "unknown")),
    count=st.integers(0, 1000),
    first_ns=st.none() | st.integers(0, 2**63 - 1).map(Nanoseconds),
    ttl=st.none() | st.integers(0, 255),
)
STORIES = st.builds(
    Story,
    source_out=STORY_PLACES,
    prober=STORY_PLACES,
    errors=st.lists(st.builds(StoryError, *map(st.just, ("10.0.0.1", None, None, 64, 1))))
    .filter(lambda some: len(some) < 3)
    .map(tuple),
)


# Lines of words and places, as ``netprobe.model.combinations`` has them.
COMBINATIONS = PRINTED.read_text("ascii").splitlines()
SAID_WORDS = ("host-unreach", "icmp 3/7", "proxy-407", "refused", "unknown-EPROTO", "unknown")


@st.composite
def possible_results(draw: st.DrawFn) -> Result:
    """Any result that a run can write."""
    base = draw(results())
    words, _, places = draw(st.sampled_from(COMBINATIONS)).partition(": ")
    expect, verdict, state, reason, proof = words.split()
    where = draw(st.sampled_from(places.split(" | ")))
    said = {SAID: st.sampled_from(SAID_WORDS), ANY: REASONS}.get(reason, st.just(reason))
    data = {
        **result_to_json(base), "expect": expect, "verdict": verdict, "state": state,
        "reason": draw(said), "proof": proof, "where": [] if where == NOWHERE else where.split(),
    }  # fmt: skip
    if verdict == "pass":
        data |= {"rejected_by": None, "story": None}
    return result_from_json(data, base.order)


@st.composite
def results(draw: st.DrawFn, last_place: int = 100_000) -> Result:
    """Any result; texts may hold anything that Python can."""
    protocol = draw(st.sampled_from(("tcp", "udp", "icmp", "ipproto/4")))
    first = draw(st.integers(1, 65535)) if protocol in ("tcp", "udp") else None
    places = st.integers(0, last_place)
    return Result(
        order=(draw(places), draw(places), draw(places)),
        matrix=draw(NAMES),
        requirement=draw(NAMES),
        purpose=draw(WORDS),
        row=draw(WORDS),
        optional=draw(st.booleans()),
        expect=draw(st.sampled_from(("allowed", "denied"))),
        waived=draw(st.none() | WORDS),
        source=draw(ENDS),
        destination=draw(ENDS),
        address=draw(ENDS),
        protocol=protocol,
        port=first,
        end_port=None if first is None else draw(st.integers(first, 65535)),
        verdict=draw(st.sampled_from(VERDICTS)),
        state=draw(st.sampled_from(("open", "closed", "filtered", "open|filtered", "unreachable"))),
        reason=draw(REASONS),
        proof=draw(st.sampled_from(PROOFS)),
        where=tuple(draw(st.lists(st.sampled_from(PLACES), max_size=3, unique=True))),
        because=draw(WORDS),
        rejected_by=draw(st.none() | ENDS),
        last_hop=draw(st.none() | ENDS),
        warnings=tuple(draw(st.lists(WORDS, max_size=2))),
        rtt_ms=draw(st.none() | st.floats(0, 1e6)),
        attempts=draw(st.integers(0, 1000)),
        stops=draw(st.none() | st.sampled_from(WEIGHTS)),
        story=draw(st.none() | STORIES),
    )
