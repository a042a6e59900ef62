"""Reports, records, requests and plans of strangers: no text of one is a command or a rule.

Every text of a genuine document is filled with what breaks out of shells, nft, YAML, XML, tables,
HCL and terminals. It is refused where it is read, with one line that names the file and the place,
or it stays a text in all syntaxes, undo files and reports: that is what shells that run them, and
the parsers of others, say.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.errors import RequestError
from netprobe.model.plan import Plan
from netprobe.model.ports import Ports
from netprobe.model.result import Result
from netprobe.plan.asked import keep_asked, keep_ruled
from netprobe.report.record.earlier import rule_notes
from netprobe.report.record.record import Earlier, read_earlier
from netprobe.request.safe import check_words
from tests.foreign import documents
from tests.foreign.payloads import PAYLOADS, kind_of, put_text, rename_texts, texts_in
from tests.foreign.proofs import check_text
from tests.foreign.sandbox import check_commands, run_scripts
from tests.foreign.world import (
    Genuine,
    Store,
    find_problem,
    run_command,
    store_plan,
    store_record,
    store_report,
)
from tests.lab.netlab import Lab
from tests.report.plans import PLAN
from tests.report.samples import PASSED
from tests.request.flows import ask
from tests.request.samples import flow, sample

KINDS: dict[str, tuple[Store, Callable[[], Any]]] = {
    "report": (store_report, documents.report_document),
    "record": (store_record, documents.record_document),
    "plan": (store_plan, documents.plan_documents),
}
# How a payload comes into a text: instead of it, behind it, or in its midst.
WAYS: tuple[Callable[[str, str], str], ...] = (
    lambda _, payload: payload,
    lambda text, payload: text + payload,
    lambda text, payload: text[:1] + payload + text[1:],
)
CHANGES = list(product(sorted(PAYLOADS), range(len(WAYS))))
# They start shells, and read a document hundreds of times.
slow = pytest.mark.slow
few = settings(max_examples=1, suppress_health_check=[HealthCheck.function_scoped_fixture])
many = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
# Protocols and addresses of which one syntax or another would make something else.
COMMAND = "tcp; touch OWNED #"


def changed(text: str, change: tuple[str, int]) -> str:
    """Give the text with a payload in it."""
    payload, way = change
    return WAYS[way](text, PAYLOADS[payload])


@pytest.fixture(params=KINDS)
def genuine(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Genuine, Any]:
    """A genuine document of a kind, and what netprobe writes out of it."""
    store, make = KINDS[request.param]
    (tmp_path / "files").mkdir()
    (tmp_path / "tools").mkdir()
    monkeypatch.chdir(tmp_path / "files")
    return Genuine(tmp_path / "files", store, make(), tmp_path / "tools"), make()


def fill_texts(world: Genuine, document: Any, seed: int) -> tuple[Any, Counter[str]]:
    """Fill all texts that may hold it with payloads.

    Where the text was the same, it is the same again: names still name hosts. Gives how many tries
    were refused where they were read, and how many were read.
    """
    chance = random.Random(seed)
    renamed: dict[str, str] = {}
    tries: Counter[str] = Counter()
    texts = {text for _, text in texts_in(document)}
    for text in sorted(texts):
        one = {text: changed(text, chance.choice(CHANGES))}
        if not texts.isdisjoint(one.values()):
            continue  # two names would become one
        texts |= set(one.values())
        refused = world.is_refused(rename_texts(document, one))
        tries["refused" if refused else "read"] += 1
        renamed |= {} if refused else one
    return rename_texts(document, renamed), tries


@slow
@given(seed=st.integers(0, 2**32))
@few
def test_texts_that_are_read_stay_texts(genuine: tuple[Genuine, Any], seed: int) -> None:
    """A payload in every text that may hold it changes words only, in all that is written."""
    world, document = genuine
    filled, tries = fill_texts(world, document, seed)

    assert world.prove(filled) > 0
    assert min(tries["refused"], tries["read"]) > 0


@pytest.mark.full
@given(seed=st.integers(0, 2**32))
@many
def test_many_payloads_stay_texts(genuine: tuple[Genuine, Any], seed: int) -> None:
    """As above, with more payloads in each text."""
    world, document = genuine
    world.prove(fill_texts(world, document, seed)[0])


@pytest.mark.lab
@given(seed=st.integers(0, 2**32))
@few
def test_nft_reads_what_is_left(genuine: tuple[Genuine, Any], seed: int) -> None:
    """nft itself finds rules only, of the table and the chains that netprobe writes."""
    world, document = genuine
    filled, _ = fill_texts(world, document, seed)
    with Lab() as lab:
        machine = lab.namespace("firewall")
        machine.nft("table inet filter { chain forward { }; chain input { }; chain output { }; }")
        before = machine.run("nft", "list", "ruleset")
        machine.nft(world.write_rules(filled)["nftables"].decode())
        after = machine.run("nft", "list", "ruleset").splitlines()

    rules = [line for line in after if "counter packets" in line]
    assert rules
    assert [line for line in after if line not in rules] == before.splitlines()


def test_a_command_in_a_script_is_noticed(tmp_path: Path) -> None:
    """What runs scripts here sees a file, an unknown command, and words that are no firewall's."""
    for text in ("/bin/touch OWNED", "touch x", "iptables 'a;b'", "$(/bin/touch OWNED)", "'"):
        with pytest.raises(AssertionError):
            check_commands(run_scripts(tmp_path, {"evil": f"#!/bin/sh\n{text}\n"}, ""))
        (tmp_path / "empty" / "OWNED").unlink(missing_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["report", "record"])
def test_every_text_alone_is_read_or_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A single text that differs from all others like it is refused by its key, or it is read."""
    monkeypatch.chdir(tmp_path)
    store, make = KINDS[kind]
    document, chance = make(), random.Random(1)
    for way in {kind_of(way): way for way, _ in texts_in(document)}.values():
        payload = PAYLOADS[chance.choice(sorted(PAYLOADS))]
        store(tmp_path, put_text(document, way, payload))
        problem = find_problem("f")
        assert problem.startswith("f:") or not problem, problem
        check_text(b"", problem.encode())


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("protocol", COMMAND, f"{COMMAND!r}, expected tcp, udp, icmp or ipproto/N"),
        ("protocol", "ipproto/\u0663", "expected tcp, udp, icmp or ipproto/N"),
        ("protocol", "ipproto/255", "expected tcp, udp, icmp or ipproto/N"),
        ("address", "10.0.0.11; reboot", "expected an IP address or a name"),
        ("address", "fe80::1%$(reboot)", "expected an IP address or a name"),
        ("rejected_by", "10.0.0.1 `reboot`", "expected an IP address or a name"),
        ("source", "worker-0\nreboot", "expected one line of text without control characters"),
        ("destination", "\u202e", "expected one line of text without control characters"),
        ("requirement", "etcd: x", 'expected letters, digits, "-", "_" and "."'),
        ("matrix", "$(reboot)", 'expected letters, digits, "-", "_" and "."'),
        ("reason", "x;y", "expected the word of a reason"),
        ("port", None, "tcp with no ports, expected some"),
    ],
)
@pytest.mark.parametrize("kind", ["report", "record"])
def test_a_field_of_a_rule_is_of_a_closed_type(
    kind: str, key: str, value: str | None, words: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Any other text ends the command with one line: file, place, what it is, what was expected."""
    monkeypatch.chdir(tmp_path)
    store, make = KINDS[kind]
    document = make()
    result = document["results"][0] if kind == "report" else document[1]
    result[key] = value
    if key == "port":
        result["end_port"] = value
    store(tmp_path, document)
    status, out, err = run_command("request", "f", "-o", "iptables=r.sh")

    assert (status, out) == (2, "")
    place = "f:1:1: results[0]" if kind == "report" else "f:2:1: is no result"
    assert err.startswith(place)
    assert words in err
    assert err.count("\n") == 1
    assert not (tmp_path / "r.sh").exists()


def read_request() -> tuple[Earlier | None, list[Result], str]:
    """Read the request ``f`` with its results, or give the words that refuse it."""
    try:
        earlier = read_earlier("f", requests=True)
        return earlier, list(earlier.read_results()), ""
    except RequestError as error:
        return None, [], str(error)


def ends_of(plan: Plan) -> set[tuple[str, ...]]:
    """Give the hosts and the address of every flow."""
    return {(one.source.name, one.destination.name, one.address.text) for one in plan.flows()}


@slow
@given(seed=st.integers(0, 2**32))
@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_foreign_request_only_chooses_flows(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `--retry` makes of a request is a part of the plan and sentences, or it is refused."""
    monkeypatch.chdir(tmp_path)
    document, chance = documents.request_document(), random.Random(seed)
    read = 0
    for way in {kind_of(way): way for way, _ in texts_in(document)}.values():
        text = changed("x", chance.choice(CHANGES))
        store_report(tmp_path, put_text(document, way, text))
        earlier, results, problem = read_request()
        check_text(b"", problem.encode())
        if earlier is None:
            assert problem.startswith("f:")
            continue
        read += 1
        assert earlier.rules
        for part in (keep_ruled(PLAN, earlier.rules, "f"), keep_asked(PLAN, results, "f")):
            assert ends_of(part) <= ends_of(PLAN)
        for note in rule_notes(earlier.rules, [PASSED]):
            check_text(b"", note.encode())
    assert read


@pytest.mark.parametrize("protocol", [COMMAND, "ipproto/x", "ipproto/300"])
def test_no_rule_is_for_another_protocol(protocol: str) -> None:
    """Also where no file was read: the protocol stands bare in all syntaxes."""
    (rule, *_) = sample().rules
    with pytest.raises(RequestError, match="expected tcp, udp, icmp or ipproto/N"):
        check_words([replace(rule, protocol=protocol)])
    asked = flow("worker-0", "master-0", "10.0.0.10", "icmp", where=("path",))
    with pytest.raises(RequestError, match="expected tcp, udp, icmp or ipproto/N"):
        ask([replace(asked, protocol=protocol)], info=documents.INFO)


@pytest.mark.parametrize("address", ["10.0.0.0/8", "x", "fe80::1%$(reboot)", "fe80::1%eth0"])
def test_no_rule_is_for_more_than_an_address(address: str) -> None:
    """So does an address, which is that of one host."""
    (rule, *_) = sample().rules
    (end, *_) = rule.sources
    with pytest.raises(RequestError, match="expected an IP address"):
        check_words([replace(rule, sources=(replace(end, address=address),))])


@pytest.mark.parametrize(("protocol", "ports"), [("tcp", ()), ("icmp", ((1, 1),))])
def test_no_rule_lacks_its_ports(protocol: str, ports: Ports) -> None:
    """A rule for TCP without ports would open all of them."""
    (rule, *_) = sample().rules
    with pytest.raises(RequestError, match="with ports"):
        check_words([replace(rule, protocol=protocol, ports=ports)])
