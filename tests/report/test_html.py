"""The page as a file: it holds every flow once, loads nothing, and no text of others acts."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Iterator
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.files import open_output
from netprobe.judge.findings import fold
from netprobe.model.plan import Skipped
from netprobe.model.printable import clean
from netprobe.model.result import Result
from netprobe.report.page.wording import fill_holes, make_holes
from netprobe.report.record.collector import Report
from netprobe.report.run import write_html
from netprobe.report.run.html import island, parts
from netprobe.report.run.html.elements import element, raw_element
from netprobe.report.run.html.island import LEFT_OUT, Island
from tests.report.estate import make_estate
from tests.report.samples import BLOCKED, INFO, PASSED, everything, finding, flow, port, report_of
from tests.report.strategies import results

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;\u202e\x1b[31m"
# As clean() leaves it.
SHOWN = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;"


class Reader(HTMLParser):
    """Reads a page as a browser would: its elements, and the text outside of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.raw: dict[str, str] = {}
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if tag in ("script", "style"):
            self._inside = str(attributes.get("type") or tag)

    def handle_endtag(self, tag: str) -> None:
        """Leave a script or style."""
        if tag in ("script", "style"):
            self._inside = ""

    def handle_data(self, data: str) -> None:
        """Note text."""
        if self._inside:
            self.raw[self._inside] = self.raw.get(self._inside, "") + data
        else:
            self.text += data


def text_of(report: Report) -> str:
    stream = io.StringIO()
    write_html(report, stream)
    return stream.getvalue()


def data_of(report: Report) -> Any:
    data = Island(report)
    assert list(data.take(report.collector.results()))
    return json.loads(data.json())


def walk_data(data: Any) -> Iterator[tuple[Any, ...]]:
    """Unpack an island independently of the page's program: a tuple for each result."""
    for block in data["blocks"]:
        pairs = iter(
            (source, end)
            for source in block["sources"]
            for end in block["ends"]
            if block["local"] or source != end[0]
        )
        for pattern, count in zip(block["runs"][::2], block["runs"][1::2], strict=True):
            for _ in range(count):
                source, end = next(pairs)
                if pattern >= 0:
                    names = (data["hosts"][source]["name"], data["hosts"][end[0]]["name"], end[1])
                    for ports, kind in walk_pattern(data, pattern):
                        because = fill_holes(data["sentences"][kind["because"]], names)
                        yield (
                            block["matrix"], block["requirement"], *names, block["protocol"],
                            *ports, kind["verdict"], kind["reason"], because,
                        )  # fmt: skip


def walk_pattern(data: Any, number: int) -> Iterator[tuple[tuple[int, int], Any]]:
    """Give the ports and the class of each result of a pair."""
    shape, *runs = data["patterns"][number]
    kinds = [kind for kind, count in zip(runs[::2], runs[1::2], strict=True) for _ in range(count)]
    ports = data["shapes"][shape]
    yield from zip(
        zip(ports[::2], ports[1::2], strict=True),
        (data["classes"][kind] for kind in kinds),
        strict=True,
    )


def describe_flow(one: Result) -> tuple[Any, ...]:
    """What the page must have of a result."""
    return (
        one.matrix, one.requirement, one.source, one.destination, one.address, one.protocol,
        one.port or 0, one.end_port or 0, one.verdict, clean(one.reason), clean(one.because),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("title", "shown"), [("", "netprobe"), ("Site A, before", "Site A, before"), (EVIL, SHOWN)]
)
def test_a_page_has_the_title_that_it_is_given(title: str, shown: str) -> None:
    """In the browser's tab, and above the verdict; it is only text."""
    stream = io.StringIO()
    report = replace(report_of([PASSED]), title=clean(title))
    with closing(report.collector):
        write_html(report, stream)
    text = Reader(stream.getvalue()).text

    assert text.count(f"{shown}: PASS") == 1
    assert text.count(shown) >= 2


@pytest.mark.parametrize("report", [everything(), make_estate(9, 0.1)], ids=["all", "estate"])
def test_the_page_has_every_flow_as_the_run_has_it(report: Report) -> None:
    """Ends, ports, verdict, reason and evidence; none is lost, none comes twice."""
    found = sorted(walk_data(data_of(report)))

    assert found == sorted(
        describe_flow(one)
        for one in report.collector.results()
    )  # fmt: skip


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(results(), max_size=12))
def test_any_run_is_a_page_with_all_its_flows(some: list[Result]) -> None:
    """Whatever texts and ports there are, in whatever order they come."""
    report = report_of(some)
    data = Island(report)
    taken = list(data.take(report.collector.results()))

    found = sorted(walk_data(json.loads(data.json())))

    assert found == sorted(describe_flow(one) for one in taken)
    assert text_of(report).isascii()


def test_flows_of_a_host_to_itself_and_to_two_addresses_are_kept_apart() -> None:
    """Where the matrix is local; and where a host has two families."""
    flows = [
        flow(PASSED, 0),
        flow(PASSED, 1, destination="master-0", address="10.0.0.10"),
        flow(BLOCKED, 2, address="fd00::11"),
        port(BLOCKED, 2380, order=(3, 0, 0)),
        replace(PASSED, order=(4, 0, 0), protocol="icmp", port=None, end_port=None),
    ]

    found = list(walk_data(data_of(report_of(flows))))

    assert len(found) == 5
    assert {row[4] for row in found} == {"10.0.0.11", "10.0.0.10", "fd00::11"}


def test_a_hole_is_made_of_whole_names_only() -> None:
    """node-1 is no part of node-10, and filling the holes gives the sentence again."""
    one = replace(PASSED, source="node-1", destination="node-10", address="10.0.0.1")
    text = "node-10's capture saw node-1 (10.0.0.1), not 10.0.0.11; node-1."

    holed = make_holes(text, one)

    assert holed == "\x02's capture saw \x01 (\x03), not 10.0.0.11; \x01."
    assert fill_holes(holed, ("node-1", "node-10", "10.0.0.1")) == text


def test_sentences_without_room_are_left_out_and_said_to_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A page stays a page where each flow has a sentence of its own; no flow is left out."""
    monkeypatch.setattr(island, "MOST_SENTENCE_CHARACTERS", 200)
    flows = [flow(BLOCKED, place, because=f"{place} other words") for place in range(50)]

    data = data_of(report_of(flows))

    assert len(list(walk_data(data))) == 50
    assert LEFT_OUT in data["sentences"]
    assert sum(map(len, data["sentences"])) <= 200 + len(LEFT_OUT)


def test_findings_without_room_keep_their_titles(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are named, and the first ones are told."""
    monkeypatch.setattr(parts, "MOST_CHARACTERS", 5_000)
    flows = [flow(BLOCKED, place, source=f"s{place}") for place in range(30)]

    text = text_of(
        report_of(flows, *(finding(f"title {one.source}", "open", one) for one in flows))
    )

    assert text.count("<article") < 10
    assert all(f"BLOCKED: title s{place}" in text for place in range(30))


def test_the_policy_allows_only_what_is_in_the_file() -> None:
    """The hashes are those of the script and the style as they stand there; nothing is loaded."""
    text = text_of(everything())
    page = Reader(text)
    policy = next(one["content"] for tag, one in page.elements if "http-equiv" in one) or ""

    def hash_of(kind: str) -> str:
        return base64.b64encode(hashlib.sha256(page.raw[kind].encode()).digest()).decode()

    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{hash_of('module')}';" in policy
    assert f"style-src 'sha256-{hash_of('style')}';" in policy
    assert "unsafe" not in policy
    named = [one.get(key) for _, one in page.elements for key in ("src", "href", "action", "style")]
    assert {str(one)[0] for one in named if one} == {"#", "d"}
    assert not [key for _, one in page.elements for key in one if key.startswith("on")]
    assert text.isascii()


def test_a_reader_without_javascript_gets_what_matters() -> None:
    """Headline, findings with what to do, table of roles, what is open, skipped and hosts."""
    page = Reader(text_of(everything()))

    for words in (
        "BLOCKED: 26 blocked and 1 exposed of 1,033 required flows, 3 findings",
        "Allow tcp 2380 from master-0, master-2 to master-1 on both firewalls.",
        "7 SYNs, no answer; master-1's packet recorder never saw them",
        "INCONCLUSIVE: the evidence allows both", "NOT TESTED: nobody could look",
        "setting modules lacks cloud-provider-vcd", "no Python 3.6 or newer; install python3",
        "1,035 flows: 1,002 pass",
    ):  # fmt: skip
        assert words in page.text
    cells = [one for _, one in page.elements if "data-from" in one]
    assert ("master", "master") in [(one["data-from"], one["data-to"]) for one in cells]
    assert "1 blocked, 1 exposed, 1 optional, 1,002 pass of 1,005 flows" in page.text


@pytest.mark.parametrize("place", ["pages/report.html", "report.html"])
def test_a_finding_links_the_file_with_its_packets(tmp_path: Path, place: str) -> None:
    """From the page's own folder, so that both can be moved together."""
    packets = tmp_path / "what was: seen" / "finding-01.pcapng"
    packets.parent.mkdir()
    packets.touch()
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    linked = replace(finding("cause", "Mend it.", BLOCKED), evidence=str(packets))
    report = report_of([BLOCKED], linked)
    with closing(report.collector), open_output(str(path)) as stream:
        write_html(report, stream)
    links = [one["href"] for tag, one in Reader(path.read_text()).elements if tag == "a"]

    (link,) = [one for one in links if one and not one.startswith("#")]
    assert urljoin(path.as_uri(), link) == packets.as_uri()


def test_warnings_stand_above_the_table_of_flows() -> None:
    """Who reads on to the flows has seen them."""
    text = Reader(text_of(report_of([replace(PASSED, warnings=("the port is held twice",))]))).text

    assert text.index("WARNINGS") < text.index("the port is held twice") < text.index("How to sear")


def test_each_reason_of_what_is_skipped_has_one_line() -> None:
    """Whatever matrices it is of; their requirements are told apart."""
    given = [("a", "x", "no host"), ("b", "y", "no host"), ("b", "z", "no host"), ("b", "w", "off")]
    info = replace(INFO, skipped=tuple(Skipped(*one) for one in given))
    section = text_of(report_of([PASSED], info=info)).partition('<section id="skipped"')[2]
    rows = re.findall(r"<tr>(.*?)</tr>", section.partition("</section>")[0])

    cells = [re.findall(r"<td>(.*?)</td>", row) for row in rows]
    assert cells == [[], ["no host", "a, b", "a: x; b: y, z"], ["off", "b", "w"]]


def test_the_verdict_is_the_title_and_the_heading() -> None:
    """Whatever else the first lines say: only what casts a doubt is an alert."""
    told = "BASELINE: base.json: 1 newly blocked"
    info = replace(INFO, earlier="RETRIED: what run.jsonl asks for", baseline=told)
    text = text_of(report_of([PASSED, flow(BLOCKED, 1)], info=info))

    verdict = "BLOCKED: 1 blocked of 2 required flows"
    assert f"<h1>{verdict}</h1>" in text
    assert f"<title>netprobe: {verdict}</title>" in text
    assert '<p class="alert">RETRIED: what run.jsonl asks for</p>' in text
    assert f"<p>{told}</p>" in text


def test_a_cell_of_excused_flows_says_so() -> None:
    """For readers of screens too: no word of it counts them as pass."""
    text = text_of(report_of([PASSED, flow(BLOCKED, 1, optional=True)]))

    assert 'title="1 optional, 1 pass of 2 flows"' in text
    assert '<span class="unseen">1 optional, 1 pass of 2 flows: </span>' in text
    assert '<span class="sign excused" aria-hidden="true">~</span>' in text
    assert "excused (accepted, waived, spared, optional, known)</li>" in text
    assert "2 pass" not in text


def test_texts_of_others_stay_texts() -> None:
    """Whatever hosts, matrices and banners are called: no element, no end of the data."""
    bad = replace(
        BLOCKED, source=EVIL, destination=f"d{EVIL}", address=f"a{EVIL}", because=EVIL,
        purpose=EVIL, row=f"r{EVIL}", matrix=f"m{EVIL}", requirement=f"q{EVIL}", holder=EVIL,
        warnings=(EVIL,), rejected_by=EVIL, last_hop=EVIL,
    )  # fmt: skip
    report = report_of([bad], finding(EVIL, EVIL, bad))
    info = replace(report.info, notes=(EVIL,), selection=EVIL, earlier=EVIL, sample=EVIL)
    whole = text_of(replace(report, info=info))
    page = Reader(whole)

    assert [tag for tag, _ in page.elements].count("script") == 2
    assert "img" not in {tag for tag, _ in page.elements}
    assert page.text.count(SHOWN) > 10
    data = json.loads(page.raw["application/json"])
    assert {host["name"] for host in data["hosts"]} > {SHOWN, f"d{SHOWN}"}
    assert not re.search(r"[<>&]", page.raw["application/json"])
    assert "202e" not in whole


def test_an_element_takes_no_raw_end() -> None:
    """Our own script cannot hold its end; texts and attributes are escaped."""
    with pytest.raises(ValueError, match="would end its <script>"):
        raw_element("script", "let x = '</ScRiPt>';")
    assert element("a", "<b>", href='"x') == '<a href="&quot;x">&lt;b&gt;</a>'


def test_a_run_without_results_is_a_page_too() -> None:
    """It says that nothing was tested."""
    text = Reader(text_of(report_of([]))).text

    assert "NOTHING WAS TESTED" in text
    assert "There is nothing to mend." in text


def test_an_older_file_without_roles_has_one_cell() -> None:
    """Its hosts have no role: they are any host."""
    report = make_estate(4)
    hosts = tuple(replace(host, roles=()) for host in report.info.hosts)
    old = replace(report, info=replace(report.info, requirements=(), hosts=hosts))
    cells = [one for _, one in Reader(text_of(old)).elements if "data-from" in one]

    assert [(one["data-from"], one["data-to"]) for one in cells] == [("any host", "any host")]


def test_findings_carry_their_number_to_their_flows() -> None:
    """So that the page can show the flows of a finding."""
    report = make_estate(9, 0.1)
    findings = fold(report.collector.failures(), report.collector.passes(), {})
    numbered = replace(report, findings=findings)
    data = data_of(numbered)

    numbers = {kind.get("finding") for kind in data["classes"]} - {None}
    assert numbers == {one.number for one in findings}
