"""The sections of the page that are read without its program, in print and in mail previews."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from netprobe.model.plan import QUALITY, Skipped
from netprobe.model.reasons import owner_of
from netprobe.model.result import Finding, HostReport
from netprobe.report.page.page import Field, Line, More, PageSection
from netprobe.report.page.progress import host_words
from netprobe.report.page.wording import EXCUSES, number, plural
from netprobe.report.record.collector import Report
from netprobe.report.run.html.elements import Markup, element, keep_names
from netprobe.report.run.map import SIGNS
from netprobe.report.run.overview import OWNER_WORDS, overview_section, word_weight
from netprobe.report.run.pair_map import WORST, Cell, PairFate, PairMap
from netprobe.report.run.run_page import RunPage, finding_section

# Of a finding's groups of flows; the search of the page finds all of them.
MOST_FLOW_LINES = 40
MOST_OPEN_LINES = 6
MOST_OPEN_CHARACTERS = 400
# All findings have a line; the first ones all their text, as long as there is room.
MOST_CHARACTERS = 500_000
# So many findings are open. Of more the page folds the text of all after the first ones, so that
# the flows are a few screens away.
MOST_OPEN_FINDINGS = 10
FIRST_OPEN_FINDINGS = 2
# So many findings are listed first. More skipped requirements or hosts than these are cut.
MANY_FINDINGS = 2
MOST_LINES = 2_000

_STATES = {
    "agent": "agent", "none": "destination only", "failed": "no agent", "lost": "agent lost",
    "unknown": "unknown",
}  # fmt: skip


def make_sign(fate: PairFate) -> Markup:
    """Give the sign of a verdict or fate; its word must stand beside it."""
    return element("span", SIGNS[fate], class_=f"sign {fate}", aria_hidden="true")


def _make_section(name: str, title: str, *children: Markup) -> Markup:
    head = element("h2", title, id=f"{name}-title")
    return element("section", head, *children, id=name, aria_labelledby=f"{name}-title")


def summary_section(page: RunPage) -> Markup:
    """Show the answer, who must act, and the index of the findings."""
    told = overview_section(page.overview, ())
    index = _list_findings(page.findings)
    return _make_section("summary", told.title.text.capitalize(), *_write_groups(told), *index)


def findings_section(page: RunPage, folder: str = "") -> Markup:
    """Show every finding with what to do; those beyond the room only by their title.

    ``folder`` is where the page goes: files with packets are linked from there.
    """
    told = page.findings
    if not told:
        return _make_section("findings", "Findings", element("p", "There is nothing to mend."))
    articles: list[Markup] = []
    room = MOST_CHARACTERS
    open_ones = MOST_OPEN_FINDINGS if len(told) <= MOST_OPEN_FINDINGS else FIRST_OPEN_FINDINGS
    for finding in told:
        section = finding_section(finding, page.addresses, MOST_FLOW_LINES)
        title = _write_title(finding, section)
        is_open = len(articles) < open_ones
        packets = _link_packets(finding, folder)
        article = _write_article(finding, title, section, packets, is_open=is_open)
        room -= len(article)
        articles.append(article if room > 0 else title)
    count = plural(len(told), "finding")
    return _make_section("findings", count.capitalize(), *articles)


def _list_findings(findings: Sequence[Finding]) -> Iterator[Markup]:
    """List the findings before they are told: whoever reads on knows what is still to come."""
    if len(findings) < MANY_FINDINGS:
        return
    lines = [
        element(
            "li",
            make_sign(one.verdict),
            _hide_word(one.verdict),
            element("a", keep_names(one.title), href=f"#finding-{one.number}"),
            f" ({OWNER_WORDS[owner_of(one)]}; {word_weight(one)})",
            value=str(one.number),
        )
        for one in findings
    ]
    yield element("ol", *lines, class_="contents")


def _hide_word(word: str) -> Markup:
    """Give a word that only readers of screens get: others see its sign."""
    return element("span", f"{word}: ", class_="unseen")


def _write_title(finding: Finding, section: PageSection) -> Markup:
    text = keep_names(section.title.text)
    return element("h3", make_sign(finding.verdict), text, id=section.name)


def _link_packets(finding: Finding, folder: str) -> Markup | None:
    """Link the file with packets: page and files may be moved together."""
    if finding.evidence is None:
        return None
    way = quote(os.path.relpath(finding.evidence, folder or os.curdir))
    # A name with a colon before its first slash would be a scheme.
    return element("a", keep_names(finding.evidence), href=f"./{way}")


def _write_article(
    finding: Finding,
    title: Markup,
    section: PageSection,
    packets: Markup | None,
    *,
    is_open: bool,
) -> Markup:
    """Write a finding; one that is not open has its text behind its title."""
    text = (*_write_groups(section, packets), element("div", class_="actions"))
    folded = element("details", element("summary", title), *text)
    return element(
        "article",
        *((title, *text) if is_open else (folded,)),
        class_=finding.verdict,
        data_finding=str(finding.number),
    )


def _write_field(field: Field, packets: Markup | None = None) -> Markup:
    """Give a field; what is long can be opened, so that the next finding stays in sight.

    ``packets``: the link to the file with packets.
    """
    if field.label == "packets" and packets is not None:
        return Markup(element("dt", field.label) + element("dd", packets))
    mark = "todo" if field.label == "to do" else None
    lines = [_word_line(line) for line in field.lines]
    items = [element("dd", _fold_text(line), class_=mark) for line in lines[:MOST_OPEN_LINES]]
    rest = [element("p", _fold_text(line)) for line in lines[MOST_OPEN_LINES:]]
    if rest:
        head = element("summary", f"and {number(len(rest))} more")
        items.append(element("dd", element("details", head, *rest)))
    return Markup(element("dt", field.label, class_=mark) + "".join(items))


def _word_line(line: str | More) -> str:
    """Give the text of a line; the page itself has all flows."""
    if isinstance(line, More) and line.output == "wide":
        return f"{line.text}, see Flows"
    return str(line)


def _fold_text(text: str) -> Markup:
    """Give a text, a long one with its end folded away."""
    if len(text) <= MOST_OPEN_CHARACTERS:
        return keep_names(text)
    cut = text.rfind(" ", 0, MOST_OPEN_CHARACTERS)
    begin, end = text[:cut], text[cut:]
    rest = element("p", "… ", keep_names(end.strip()))
    return element("details", element("summary", keep_names(begin), " …"), rest)


def roles_section(pairs: PairMap) -> Markup:
    """Show the table of roles; each cell has its figures in words too."""
    if not pairs.cells:
        return _make_section("roles", "Who reaches whom", element("p", "There was no flow."))
    ends = pairs.destinations
    corner = element("td", "from ↓ to →", class_="corner quiet")
    heads = [element("th", keep_names(role), scope="col") for role in ends]
    rows = [
        element(
            "tr",
            element("th", source, scope="row"),
            *(_write_cell(source, end, pairs.cells.get((source, end))) for end in ends),
        )
        for source in pairs.sources
    ]
    hint = (
        "A cell counts flows, and the worst of them gives its sign: 5/20 says that 5 of 20 are so."
    )
    way = element("span", " Open one for its hosts.", class_="onscreen")
    return _make_section(
        "roles",
        "Who reaches whom",
        element("p", hint, way, class_="quiet"),
        _write_table([corner, *heads], rows, "roles", "Roles"),
        element("ul", *map(_explain_sign, reversed(WORST)), class_="legend quiet"),
    )


def _explain_sign(fate: PairFate) -> Markup:
    more = f" ({', '.join(EXCUSES)})" if fate == "excused" else ""
    return element("li", make_sign(fate), f"{fate.replace('-', ' ')}{more}")


def _write_cell(source: str, destination: str, cell: Cell | None) -> Markup:
    if cell is None:
        return element("td")
    worst = cell.worst
    failed = "" if worst == "pass" else f"{number(cell.counts[worst])}/"
    words = f"{number(cell.flows)} pass" if worst == "pass" else cell.words
    return element(
        "td",
        element(
            "span",
            make_sign(worst),
            element("span", f"{failed}{number(cell.flows)}", aria_hidden="true"),
            _hide_word(words),
            class_="figures",
        ),
        class_="bad" if worst not in ("excused", "pass") else None,
        data_from=source,
        data_to=destination,
        title=words,
    )


def rest_section(page: RunPage) -> Markup:
    """Show what is beside the findings but for what has a table of its own."""
    told = [one for one in page.sections if one.name not in ("skipped", QUALITY)]
    written = [
        item
        for one in told
        for item in (element("h3", keep_names(one.title.text)), *_write_groups(one))
    ]
    nothing = element("p", "There is nothing else to say.")
    return _make_section("rest", "Beside the findings", *(written or [nothing]))


def _write_groups(section: PageSection, packets: Markup | None = None) -> Iterator[Markup]:
    """Give what stands below a heading: labelled fields as lists, lines as paragraphs."""
    for group in section.groups:
        fields = [part for part in group if isinstance(part, Field)]
        if fields:
            yield element("dl", *(_write_field(one, packets) for one in fields))
        lines = (keep_names(one.text.strip()) for one in group if isinstance(one, Line))
        yield from (element("p", text) for text in lines)
    if section.more:
        yield element("p", _word_line(section.more))


def skipped_section(report: Report) -> Markup:
    """List what was not tested on purpose, a line for each reason."""
    by_reason: dict[str, list[Skipped]] = {}
    for one in report.info.skipped:
        by_reason.setdefault(one.reason, []).append(one)
    rows = [
        (
            reason,
            _list_once(one.matrix for one in some),
            _list_requirements(some),
            _list_once(" → ".join(filter(None, (one.source, one.destination))) for one in some),
        )
        for reason, some in by_reason.items()
    ]
    columns = ("Why it is not tested", "Matrix", "Requirements", "Hosts")
    count = len({(one.matrix, one.requirement) for one in report.info.skipped})
    title = f"Skipped on purpose: {plural(count, 'requirement')}"
    return _make_listing("Skipped", title, columns, rows, "Nothing.")


def _list_requirements(skipped: Sequence[Skipped]) -> str:
    """List requirements, those of several matrices with their matrix."""
    by_matrix: dict[str, list[str]] = {}
    for one in skipped:
        by_matrix.setdefault(one.matrix, []).append(one.requirement)
    if len(by_matrix) == 1:
        return _list_once(next(iter(by_matrix.values())))
    return "; ".join(f"{matrix}: {_list_once(ids)}" for matrix, ids in by_matrix.items())


def _list_once(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(filter(None, texts)))


def hosts_section(report: Report) -> Markup:
    """List the hosts, what they are, and what their agents could do."""
    rows = [_host_cells(host) for host in report.info.hosts]
    columns = ("Host", "Roles", "Addresses", "Zone", "Agent", "What it lacks")
    title = plural(len(rows), "host").capitalize()
    return _make_listing("Hosts", title, columns, rows, "None is known.")


def _host_cells(host: HostReport) -> tuple[str, ...]:
    words = [host_words(host), *host.cost]
    cells = (host.name, ", ".join(host.roles), ", ".join(host.addresses), host.zone or "")
    return (*cells, _STATES.get(host.state, host.state), "; ".join(filter(None, words)))


def _make_listing(
    label: str, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], nothing: str
) -> Markup:
    """Make the section of a long table without its empty columns, or of words instead of one."""
    name = label.lower()
    if not rows:
        return _make_section(name, title, element("p", nothing))
    filled = [place for place in range(len(columns)) if any(row[place] for row in rows)]
    heads = [element("th", columns[place], scope="col") for place in filled]
    lines = [
        element("tr", *(element("td", _fold_text(row[place])) for place in filled))
        for row in rows[:MOST_LINES]
    ]
    more = len(rows) - MOST_LINES
    if more > 0:
        lines.append(element("tr", element("td", f"and {number(more)} more", colspan="9")))
    return _make_section(name, title, _write_table(heads, lines, "listing", label))


def _write_table(heads: Iterable[Markup], rows: Iterable[Markup], kind: str, label: str) -> Markup:
    head = element("thead", element("tr", *heads))
    table = element("table", head, element("tbody", *rows), class_=kind)
    return element("div", table, class_="wide", role="region", aria_label=label, tabindex="0")
