"""The page in a real browser, as people open it: from a file, without any network."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from netprobe.model.plan import PlannedRequirement
from netprobe.model.result import Also, Result
from netprobe.report.record.collector import Collector, Report
from netprobe.report.run import write_html
from netprobe.report.run.pair_map import map_pairs
from tests.browsers import make_patient, open_browser, wait_until_painted
from tests.report.estate import estate_info, make_estate, make_hosts, walk_estate
from tests.report.samples import BLOCKED, PASSED, everything, finding, flow, report_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]
EVIL = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>\",'&lt;*"
MOST_BYTES = 2_000_000
MOST_MS = 2_000
READY = "html[data-ready]"

# What the page has searched for; it writes that into its address last.
SEARCHED = "new URLSearchParams(location.hash.slice(1)).get('q') ?? ''"

Opener = Callable[..., "Page"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all tests."""
    with open_browser() as opened:
        yield opened


@pytest.fixture
def make_context(browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """Gives contexts with these settings, and closes them."""
    made: list[BrowserContext] = []

    def make(**settings: object) -> BrowserContext:
        made.append(browser.new_context(**settings))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for context in made:
        context.close()


@pytest.fixture
def open_page(make_context: Callable[..., BrowserContext], tmp_path: Path) -> Iterator[Opener]:
    """Writes a page of a run and opens it; at the end, nothing may have gone wrong in it.

    A page asks for nothing but itself, and its program and its policy complain of nothing.
    """
    asked: list[str] = []
    said: list[str] = []
    reports: list[Report] = []

    def open_it(report: Report, fragment: str = "", **settings: object) -> Page:
        path = tmp_path / "report.html"
        reports.append(report)
        path.write_text(write_page(report), encoding="utf-8")
        page = make_patient(make_context(**settings).new_page())
        page.on("request", lambda request: asked.append(request.url.partition("#")[0]))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(f"{path.as_uri()}{fragment}")
        if settings.get("java_script_enabled", True):
            page.wait_for_selector(READY, state="attached")
            wait_until_painted(page)
        return page

    yield open_it
    for report in reports:
        report.collector.close()
    assert set(asked) == {(tmp_path / "report.html").as_uri()}
    assert said == []


def write_page(report: Report) -> str:
    stream = io.StringIO()
    write_html(report, stream)
    return stream.getvalue()


def wait_for(page: Page, script: str, wanted: object = True) -> None:
    """Wait until a script gives this: what follows a key or a click comes a moment later."""
    from playwright.sync_api import TimeoutError as Late  # noqa: PLC0415 # slow, as above

    with contextlib.suppress(Late):
        page.wait_for_function(f"wanted => ({script}) === wanted", arg=wanted)
    assert page.evaluate(script) == wanted, script


def found_of(page: Page, query: str) -> str:
    """Search, and give what the page says of it."""
    page.fill("#search", query)
    wait_for(page, SEARCHED, query)
    return page.inner_text("#found")


class Streamed(Collector):
    """Makes its results when they are read: half a million of them need no disk."""

    def __init__(self, hosts: int, noise: float) -> None:
        super().__init__()
        self._hosts, self._noise = make_hosts(hosts), noise

    def results(self) -> Iterator[Result]:
        """Give them anew."""
        return walk_estate(self._hosts, self._noise)


@pytest.mark.parametrize("hosts", [70, pytest.param(200, marks=pytest.mark.full)])
def test_a_large_page_is_small_and_all_there(open_page: Opener, hosts: int) -> None:
    """At most 2 MB for 437,800 flows with failures of all kinds, and every flow is found."""
    report = Report(estate_info(hosts), Streamed(hosts, 0.002))

    page = open_page(report, "#q=-verdict:pass&from=node&to=node")

    assert os.path.getsize(page.url.partition("#")[0].removeprefix("file://")) < MOST_BYTES
    assert page.locator("#map canvas").count() == 1
    page.click("[data-query='']")
    wait_for(page, SEARCHED, "")
    assert page.inner_text("#found").startswith(f"{11 * hosts * (hosts - 1):,} flows found in ")


@pytest.mark.full
@pytest.mark.alone
def test_437800_flows_open_and_are_searched_at_once(open_page: Opener) -> None:
    """At most 2 s each, where nothing else keeps the machine busy."""
    page = open_page(Report(estate_info(200), Streamed(200, 0.002)), "#q=-verdict:pass")

    assert page.evaluate("performance.now()") < MOST_MS
    searched_ms = page.evaluate(
        "() => { const begun = performance.now(); search.value = 'port:6443 capture -from:node-9';"
        " search.dispatchEvent(new Event('input'));"
        " return new Promise((done) => { const look = () => /q=port/.test(location.hash)"
        " ? done(performance.now() - begun) : setTimeout(look, 5); look(); }); }"
    )
    assert searched_ms < MOST_MS


QUERIES: dict[str, Callable[[Result], bool]] = {
    "verdict:blocked from:node-8 -req:vxlan": lambda one: (
        one.verdict == "blocked" and one.source == "node-8" and one.requirement != "vxlan"
    ),
    "port:6443,9000-9200 to:master": lambda one: (
        one.port in (6443, 9100) and one.destination.startswith("master")
    ),
    "host:node-1*": lambda one: (
        one.source.startswith("node-1") or one.destination.startswith("node-1")
    ),
    "protocol:udp -verdict:pass,inconclusive": lambda one: (
        one.protocol == "udp" and one.verdict not in ("pass", "inconclusive")
    ),
    "where:path reason:admin-prohibited by:10.9.0.1": lambda one: one.rejected_by == "10.9.0.1",
    "capture": lambda one: "capture" in one.because,
    "to:10.0.1.2": lambda one: one.address == "10.0.1.2",
    "is:optional": lambda one: False,
    "*": lambda one: True,
}


def test_a_search_finds_exactly_what_the_run_has(open_page: Opener) -> None:
    """Held against the results themselves; the address keeps the search, and shows it again."""
    report = make_estate(12, 0.01)
    page = open_page(report)
    results = list(report.collector.results())

    for query, fits in QUERIES.items():
        wanted = sum(map(fits, results))
        noun = "flow" if wanted == 1 else "flows"
        assert found_of(page, query).startswith(f"{wanted:,} {noun} found"), query
    assert found_of(page, "colour:red").startswith("there is no colour: to search by")
    assert found_of(page, "port:http").startswith("port:http is no port")
    for query in ("port:", "-port:", 'from:""', "req:,"):
        assert "says nothing to search for" in found_of(page, query), query
    assert found_of(page, "node-*").startswith(found_of(page, "node-").split(";")[0])
    assert not found_of(page, "n*de-8 record*").startswith("0 flows")

    first = "verdict:blocked from:node-8 -req:vxlan"
    assert found_of(page, first)
    assert page.url.endswith("#q=verdict:blocked+from:node-8+-req:vxlan")
    again = open_page(report, f"#q={quote(first)}")
    assert again.input_value("#search") == first
    assert again.inner_text("#found") == page.inner_text("#found")


def test_a_flow_of_several_matrices_is_found_by_any_name(open_page: Opener) -> None:
    """By requirement, matrix or a word of its purpose; its evidence has all rows."""
    also = Also("cni-x", "peers", "routes of pods")
    shared = replace(BLOCKED, also=(also,), any_of="health", spared="ping")
    page = open_page(
        report_of([PASSED, replace(shared, order=(0, 1, 0), port=2380, end_port=2380)])
    )

    for query in ("req:peers", "matrix:cni-x", "pods", "is:spared"):
        assert found_of(page, query).startswith("1 flow found"), query
    page.click("#rows .opener >> nth=0")
    page.wait_for_selector("#rows .evidence")
    assert "routes of pods (cni-x, peers)" in page.inner_text("#rows .evidence")
    assert "etcd replication (deckhouse-nodes, etcd" in page.inner_text("#rows .evidence")


def test_the_map_says_what_the_run_has(open_page: Opener) -> None:
    """Each pair of hosts of a cell, with its worst verdict; a cell without flows has no button."""
    report = make_estate(12, 0.01)
    page = open_page(report)
    cell = map_pairs(report, report.collector.results()).cells["node", "frontend"]

    page.click("#roles td[data-from=node][data-to=frontend] button")
    page.wait_for_selector("#map td button")

    shown = page.eval_on_selector_all(
        "#map td button",
        "all => all.map(one => [one.ariaLabel.split(':')[0], one.closest('td').className])",
    )
    assert {tuple(one) for one in shown} == {
        (f"{source} → {destination}", f"cell {verdict}")
        for (source, destination), verdict in cell.pairs.items()
    }
    bad = sum(verdict != "pass" for verdict in cell.pairs.values())
    assert page.locator("#map-list li").count() == bad

    # The button says it for two seconds only.
    page.evaluate("window.setTimeout = () => 0")
    page.click("#finding-1 >> xpath=.. >> text=Copy")
    assert page.wait_for_selector("text=Copied")


def test_a_pair_of_excused_flows_is_not_all_pass(open_page: Opener) -> None:
    """It has the sign of its own, and says why its failures decide nothing."""
    page = open_page(report_of([PASSED, flow(BLOCKED, 1, optional=True)]), "#from=master&to=master")
    button = page.locator("#map td button")

    assert button.get_attribute("aria-label") == "master-0 → master-1: 1 optional, of 2 flows"
    assert button.inner_text() == "~"
    assert page.locator("#map-list .excused.sign").count() == 1
    assert "1 pair of 1 did not all pass" in page.inner_text("#map-words")


def test_a_narrow_window_scrolls_tables_sideways(open_page: Opener) -> None:
    """No word is broken, no line is high, and the evidence is read without scrolling."""
    page = open_page(everything(), viewport={"width": 390, "height": 800})
    page.click("#rows .opener >> nth=1")
    page.wait_for_selector("#rows .evidence")

    def sizes(selector: str, size: str) -> list[int]:
        script = f"all => all.map(one => one.{size})"
        return list(page.eval_on_selector_all(selector, script))

    assert sizes("html", "scrollWidth") == [390]
    assert max(sizes("#rows tr:not(.evidence), #hosts tr", "offsetHeight")) < 140
    assert min(sizes("#flows td:nth-child(3)", "offsetWidth")) > 80
    assert sizes("#flows .wide", "scrollWidth") > sizes("#flows .wide", "clientWidth")
    assert sizes("#rows .evidence dl", "offsetWidth")[0] < 390


BROKEN_NAMES = """
() => {
  const broken = [], blocks = "p, dd, li, h3, th, td, summary";
  for (const block of document.querySelectorAll(blocks)) {
    if (block.querySelector(blocks) || !block.checkVisibility()) continue;
    const nodes = [], walk = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const text = walk.currentNode;
      for (let at = 0; at < text.length; at++) nodes.push([text, at]);
    }
    const whole = nodes.map(([text, at]) => text.data[at]).join("");
    for (const found of whole.matchAll(/[^\\s,+]*\\w-\\w[^\\s,+]*[,+]*/g)) {
      const middles = [...found[0]].map((_, place) => {
        const range = document.createRange(), [text, at] = nodes[found.index + place];
        range.setStart(text, at);
        range.setEnd(text, at + 1);
        const rect = range.getBoundingClientRect();
        return (rect.top + rect.bottom) / 2;
      });
      if (Math.max(...middles) - Math.min(...middles) > 8) broken.push(found[0]);
    }
  }
  return broken;
}
"""


def test_no_name_is_broken_at_its_hyphen(open_page: Opener) -> None:
    """At any width and on paper, with the comma behind it: in findings, the index, roles, sections
    beside them and the evidence of a flow."""
    report = everything()
    hosts = tuple(replace(one, roles=("control-plane",)) for one in report.info.hosts)
    info = replace(report.info, hosts=hosts)
    page = open_page(replace(report, info=info), viewport={"width": 390, "height": 800})
    page.click("#rows .opener >> nth=1")
    page.wait_for_selector("#rows .evidence")
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")

    for width in range(300, 1000, 35):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(BROKEN_NAMES) == [], width
    page.emulate_media(media="print")
    assert page.evaluate(BROKEN_NAMES) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_page: Opener, scheme: str) -> None:
    """With a map, a line's evidence and all folds open."""
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415

    page = open_page(everything(), color_scheme=scheme, bypass_csp=True)
    page.click("#roles td[data-from=master] button >> nth=0")
    page.click("#rows .opener >> nth=1")
    page.wait_for_selector("#rows .evidence")
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")

    result = Axe().run(page)

    assert result.violations_count == 0, result.generate_report()


def test_the_keyboard_is_enough(open_page: Opener) -> None:
    """From the first Tab to the evidence of a flow, and back from a map."""
    page = open_page(make_estate(50), viewport={"width": 1000, "height": 700})

    def press(*keys: str) -> None:
        for key in keys:
            page.keyboard.press(key)

    def is_focused(script: str, wanted: str) -> None:
        wait_for(page, f"document.activeElement.{script}", wanted)

    press("Tab")
    is_focused("textContent", "Skip to the findings")
    page.focus("#roles td button")
    press("ArrowRight", "ArrowDown")
    is_focused("parentElement?.dataset.from", "frontend")
    press("ArrowDown", "ArrowRight", "Enter")
    is_focused("tagName", "CANVAS")
    press("ArrowRight")
    place = "document.getElementById('map-place').textContent"
    wait_for(page, place, "frontend-3 → node-12: all pass, of 1 flow")
    press("Escape")
    wait_for(page, "document.getElementById('map').hidden")
    is_focused("parentElement?.dataset.to", "node")

    press("Enter")
    is_focused("tagName", "CANVAS")
    press("ArrowRight", "Enter")
    wait_for(page, SEARCHED, "from:frontend-3 to:node-12")
    is_focused("id", "search")
    # The browser empties the field, and the rows follow.
    press("Escape")
    wait_for(page, SEARCHED, "")
    page.evaluate("document.activeElement.blur()")
    press("/")
    is_focused("id", "search")
    page.focus("#rows .opener")
    press("ArrowDown", "Enter")
    wait_for(page, "document.querySelectorAll('#rows tr')[2].innerText.slice(0, 4)", "seen")


MOST_PIXELS = 8_000
MANY = 41
# As much as a title says of ports and hosts.
HOSTS = "from worker-1, worker-2, worker-3 and 17 more to master-1, master-2, master-3 " * 2


def _make_many() -> Report:
    """One finding for each of many causes, after flows that pass."""
    passed = [flow(PASSED, place) for place in range(3)]
    failed = [
        flow(BLOCKED, 3 + place, source=f"worker-{place}", because=f"no answer, {place}")
        for place in range(MANY)
    ]
    findings = [
        finding(f"cause {place}: {HOSTS}", f"Allow tcp 6443 {HOSTS} on the firewall.", one)
        for place, one in enumerate(failed)
    ]
    return report_of(passed + failed, *findings)


def test_many_findings_leave_the_flows_in_reach(open_page: Opener) -> None:
    """The first ones are open, the others open where a link leads to them; all are printed."""
    page = open_page(_make_many(), viewport={"width": 1280, "height": 800})
    last = page.locator(f"article[data-finding='{MANY}'] dl")

    assert page.locator("#flows").bounding_box()["y"] < MOST_PIXELS  # type: ignore[index]
    assert page.is_visible("article[data-finding='1'] dl")
    assert not last.is_visible()
    page.emulate_media(media="print")
    assert last.evaluate("one => one.checkVisibility()")
    page.emulate_media(media="screen")
    page.click(f"#summary a[href='#finding-{MANY}']")
    wait_for(page, f"document.querySelector('article[data-finding=\"{MANY}\"] details').open")
    assert last.is_visible()


def test_the_table_begins_with_what_did_not_pass(open_page: Opener) -> None:
    """In the order of the run, as what passed follows in it; both units are named."""
    page = open_page(_make_many())
    verdicts = page.locator("#rows .opener").all_inner_texts()

    assert [text[1:].strip() for text in verdicts] == ["blocked"] * MANY + ["pass"] * 3
    assert page.inner_text("#found") == f"44 flows found in 44 lines; {MANY} did not pass"
    assert page.locator(".counts li").first.inner_text().endswith("blocked")


def test_without_javascript_all_that_matters_is_there(open_page: Opener) -> None:
    """Findings, what to do, the table of roles; what needs the program is not shown."""
    phone = {"width": 280, "height": 800}
    page = open_page(everything(), java_script_enabled=False, viewport=phone)
    text = page.inner_text("body")

    assert "Allow tcp 2380 from master-0, master-2 to master-1 on both firewalls." in text
    assert "Searching all flows needs JavaScript." in text
    assert "1/1,005" in text
    assert page.is_hidden("#search")
    assert page.is_hidden("#map")
    (width, room) = page.locator("html").evaluate("one => [one.scrollWidth, one.clientWidth]")
    assert width == room


def test_print_has_the_findings_and_the_roles(open_page: Opener) -> None:
    """And the index with owners and weights, and what figures mean; neither the search nor its
    thousands of lines."""
    page = open_page(everything())
    page.emulate_media(media="print")

    assert page.locator("#summary li >> nth=2").inner_text().endswith("not said by the matrix)")
    assert page.locator("#roles p").inner_text().endswith("5/20 says that 5 of 20 are so.")
    assert page.is_visible("#findings article >> nth=2")
    assert page.is_visible("#roles table")
    assert page.is_hidden("#flows")
    assert page.is_hidden("nav")
    assert page.pdf().startswith(b"%PDF")


def test_print_folds_nothing_away(open_page: Opener) -> None:
    """Paper cannot be opened: a long advice is printed whole."""
    page = open_page(make_estate(12, 0.05))
    folded = (
        "[...document.querySelectorAll('article details > p')].map(one => one.checkVisibility())"
    )
    assert not any(page.evaluate(f"() => {folded}"))
    page.emulate_media(media="print")

    printed = page.evaluate(f"() => {folded}")
    assert printed
    assert all(printed)


def test_texts_of_others_stay_texts(open_page: Opener) -> None:
    """Names, banners and evidence that try to be a program: everywhere the page shows them."""
    evil = [
        replace(
            BLOCKED, order=(0, place, 0), source=f"{EVIL}{place}", destination=EVIL,
            address=EVIL, because=EVIL, requirement=EVIL, purpose=EVIL, matrix=EVIL,
            warnings=(EVIL,), rejected_by=EVIL, holder=EVIL, also=(Also(EVIL, EVIL, EVIL),),
        )
        for place in range(2)
    ]  # fmt: skip
    report = report_of(evil, finding(EVIL, EVIL, *evil))
    roles = PlannedRequirement(matrix=EVIL, id=EVIL, from_=(EVIL,), to=(EVIL,), protocol="tcp")
    host = replace(report.info.hosts[0], name=f"{EVIL}0", roles=(EVIL,), zone=EVIL)
    info = replace(report.info, requirements=(roles,), hosts=(host,), notes=(EVIL,))

    page = open_page(replace(report, info=info))
    page.click("#roles td button >> nth=0")
    page.click("#map td button >> nth=0")
    wait_for(page, "document.activeElement.id", "search")
    page.click("#rows .opener >> nth=0")
    page.wait_for_selector("#rows .evidence")
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")

    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert page.inner_text("body").count(EVIL) > 10
    assert page.locator("#rows tr").count() == 2


def test_what_got_in_would_not_run(
    make_context: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    """The policy of the page lets only its own program run."""
    path = tmp_path / "report.html"
    bad = "<script>window.hacked=1</script><img src=x onerror=window.hacked=2></main>"
    path.write_text(write_page(everything()).replace("</main>", bad), encoding="utf-8")
    page = make_patient(make_context().new_page())

    page.goto(path.as_uri())
    page.wait_for_selector(READY, state="attached")

    assert page.locator("script").count() == 3
    assert page.evaluate("window.hacked") is None
