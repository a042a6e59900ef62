"""The wire: every message both ways, and what is no message."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netprobe.agent.wire.batch import IN_SCRIPTS
from netprobe.agent.wire.batch_pages import IN_PAGES
from netprobe.agent.wire.codec import decode_message
from netprobe.agent.wire.frames import FrameReader, encode_frame, encode_message
from netprobe.agent.wire.host_messages import (
    Routed,
)
from netprobe.agent.wire.messages import ANSWERS, ORDERS
from netprobe.agent.wire.numbers import MOST
from netprobe.agent.wire.orders import CloseOrder
from netprobe.agent.wire.stream_messages import StreamInfo
from tests.agent.wire.values import fullest, numbers_in, put

KNOWN = {**ORDERS, **ANSWERS}
EVERYTHING = {**KNOWN, **IN_SCRIPTS, **IN_PAGES}


def value_of(shape: Any, name: str) -> st.SearchStrategy[Any]:
    """Values of a field's annotation, in the range that its name gives to numbers."""
    most = MOST.get(name, 0)
    scalars = {
        int: st.integers(0, most),
        float: st.floats(0, most),
        str: st.text(max_size=20),
        bool: st.booleans(),
        bytes: st.binary(max_size=40),
    }
    if shape in scalars:
        return scalars[shape]
    if hasattr(shape, "_fields"):
        return message_of(shape)
    arguments = shape.__args__
    if type(None) in arguments:
        return st.none() | value_of(arguments[0], name)
    if shape.__origin__ is list:
        return st.lists(value_of(arguments[0], name), max_size=3)
    if shape.__origin__ is dict:
        return st.dictionaries(st.text(max_size=5), value_of(arguments[1], name), max_size=3)
    return st.tuples(*(value_of(each, name) for each in arguments))


def message_of(record: Any) -> st.SearchStrategy[Any]:
    """Messages (or parts of them) of one class."""
    fields = [value_of(record.__annotations__[name], name) for name in record._fields]
    return st.tuples(*fields).map(lambda values: record(*values))


@pytest.mark.slow
@pytest.mark.parametrize("record", EVERYTHING.values(), ids=EVERYTHING)
@given(data=st.data())
def test_every_message_goes_both_ways(record: Any, data: st.DataObject) -> None:
    """What one end encodes is what the other decodes, to the type of every value."""
    message = data.draw(message_of(record))
    found = decode_message(encode_message(message), EVERYTHING)
    assert found == message
    assert type(found) is record


def test_orders_and_answers_are_told_by_their_names() -> None:
    """Each end has the messages that are for it, one is the same both ways, and no part is one."""
    assert ORDERS.keys() & ANSWERS.keys() == {"StreamCredit"}
    assert all(kind.endswith("Order") for kind in ORDERS.keys() - {"Beat", "StreamCredit"})
    assert {"ProbeOrder", "StreamSendOrder"} <= ORDERS.keys()
    assert {"HelloLine", "Fault", "StreamOpened"} <= ANSWERS.keys()
    assert not {"Pace", "IcmpFact", "StreamTimes"} & KNOWN.keys()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{}", "a list that begins with its kind"),
        (b"[]", "a list that begins with its kind"),
        (b"[1]", "a list that begins with its kind"),
        (b'["nonsense"]', "there is no message 'nonsense'"),
        (b'["CloseOrder"]', "CloseOrder needs 1 values"),
        (b'["CloseOrder",1,2]', "CloseOrder needs 1 values"),
        (b'["CloseOrder",true]', "CloseOrder: id: expected a whole number"),
        (b'["CloseOrder",1.5]', "expected a whole number"),
        (b'["CloseOrder",-1]', "id: expected a number from 0 to 281474976710655, not -1"),
        (b'["CloseOrder",18446744073709551616]', "id: expected a number from 0 to"),
        (b'["CloseOrder",1%s]' % (b"0" * 400), "id: expected a number from 0 to"),
        (b'["CloseOrder",1%s]' % (b"0" * 10_000), "CloseOrder|digits"),
        (b'["RateOrder",-0.5]', "per_s: expected a number from 0 to"),
        (b'["RateOrder",1e300]', "per_s: expected a number from 0 to"),
        (b'["RateOrder",Infinity]', "per_s: expected a number from 0 to"),
        (b'["CloseOrder",1' + b",[]" * 1_000_001 + b"]", "more than 1000000 values"),
        (b'["ResolveOrder",1,2]', "name: expected a text"),
        (b'["StartOrder","%",1,30]', "key: expected base64"),
        (b'["ProbeOrder",1]', "ProbeOrder needs 16 values"),
        (b'["ListenOrder",1,[["tcp","::1",[[1]],null,0]]]', "blocks: ports: expected 2 values"),
        (b'["StreamDropOrder",1,0]', "reset: expected true or false"),
        (b"[" * 100_000, "nested too deeply"),
        (b"\xff", "decode"),
    ],
)
def test_what_is_no_message_says_why(body: bytes, words: str) -> None:
    """Another type, too few or too many values, an unknown kind: the error names the field."""
    with pytest.raises(ValueError, match=words):
        decode_message(body, ORDERS)


def test_an_answer_is_no_order() -> None:
    """An end takes only what is addressed to it."""
    with pytest.raises(ValueError, match="there is no message 'Routed'"):
        decode_message(encode_message(Routed(1, None, None, None, None, None, None)), ORDERS)


@given(st.lists(message_of(CloseOrder), max_size=5), st.integers(1, 9))
def test_frames_are_cut_from_any_pieces(messages: list[CloseOrder], size: int) -> None:
    """However the bytes arrive, the messages are the same."""
    data = b"".join(map(encode_frame, messages))
    reader = FrameReader(ORDERS)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert [found for piece in pieces for found in reader.feed(piece)] == messages


def test_a_frame_that_cannot_be_ends_the_reading() -> None:
    """A length above the limit is no frame of ours."""
    with pytest.raises(ValueError, match="not our peer"):
        list(FrameReader(ORDERS).feed(b"\xff\xff\xff\xff"))


def test_a_message_is_a_short_list() -> None:
    """On the wire a message is its kind and its values; bytes are base64."""
    assert json.loads(encode_message(CloseOrder(7))) == ["CloseOrder", 7]


@pytest.mark.parametrize("record", EVERYTHING.values(), ids=EVERYTHING)
def test_every_number_has_a_range(record: Any) -> None:
    """Of every message and its parts: the largest is read, and one more, none and no number are
    refused with the name of the field."""
    values = fullest(record)
    read = decode_message(json.dumps([record.__name__, *values]).encode(), EVERYTHING)
    assert type(read) is record
    for path, name, most in numbers_in(record, values):
        assert most < 1 << 64
        for wrong in (most + 1, -1, 10**30, 1e300, float("inf"), float("nan"), True, str(most)):
            body = json.dumps([record.__name__, *put(values, path, wrong)]).encode()
            with pytest.raises(ValueError, match=f"{name}: expected"):
                decode_message(body, EVERYTHING)


def test_numbers_mean_what_their_names_say() -> None:
    """Dates are before the year 9999, ports have 16 bits, and nobody waits a day for an answer."""
    assert datetime.fromtimestamp(MOST["wall_s"], UTC).year < 9999
    assert datetime.fromtimestamp(MOST["clock_us"] / 1e6, UTC).year < 9999
    assert datetime.fromtimestamp(MOST["first_ns"] / 1e9, UTC).year < 9999
    assert {MOST[name] for name in ("port", "ports", "first", "last", "own_ports")} == {65535}
    assert MOST["rtts_us"] / 1e6 <= 86400


def test_an_object_has_few_keys() -> None:
    """TCP_INFO has a few dozen numbers; nobody fills the memory with others."""
    for count, good in ((64, True), (65, False)):
        info = StreamInfo(7, {str(number): number for number in range(count)})
        if good:
            assert decode_message(encode_message(info), ANSWERS) == info
            continue
        with pytest.raises(ValueError, match="tcp: expected an object"):
            decode_message(encode_message(info), ANSWERS)
