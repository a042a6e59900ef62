"""The whole page: what is read without its program as HTML, then the data and the program.

The policy lets run only the program that is in the file, by its hash, and lets nothing be loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.resources import files
from typing import TextIO

from netprobe.report.page.wording import number
from netprobe.report.record.collector import Report
from netprobe.report.record.spool import place
from netprobe.report.run.html.elements import Markup, element, keep_names, raw_element, source_hash
from netprobe.report.run.html.island import Island
from netprobe.report.run.html.parts import (
    findings_section,
    hosts_section,
    make_sign,
    rest_section,
    roles_section,
    skipped_section,
    summary_section,
)
from netprobe.report.run.html.quality import quality_section
from netprobe.report.run.pair_map import WORST, map_pairs
from netprobe.report.run.run_page import RunPage, make_page

SCRIPTS = ("decode.js", "filter.js", "table.js", "map.js", "main.js")
FILTERS = (
    "verdict:blocked", "port:6443", "from:worker-1", "to:master", "host:10.0.*", "where:path",
    "reason:no-response", "protocol:udp", "req:etcd", "-req:ntp", "finding:1", "is:optional",
)  # fmt: skip


def write_document(report: Report, stream: TextIO) -> None:
    """Write the page. Everything is ASCII, so that no locale or mail can damage it."""
    style = read_asset("page.css")
    script = "\n".join(map(read_asset, SCRIPTS))
    page = make_page(report)
    head = _write_head(page, style, script, report.title or "netprobe")
    folder = os.path.dirname(str(getattr(stream, "name", "")))
    whole = element("html", head, _write_body(report, page, script, folder), lang="en")
    written = whole.encode("ascii", "xmlcharrefreplace").decode()
    stream.write(f"<!DOCTYPE html>\n{written}\n")


def read_asset(name: str) -> str:
    """Give a file of the page as it stands in the package."""
    return files("netprobe.report.run.html").joinpath(name).read_text(encoding="utf-8")


def _write_head(page: RunPage, style: str, script: str, title: str) -> Markup:
    policy = (
        f"default-src 'none'; script-src {source_hash(script)}; style-src {source_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="generator", content="netprobe"),
        # A browser would ask a server for one.
        element("link", rel="icon", href="data:,"),
        element("title", f"{title}: {page.headline.verdict.text}"),
        raw_element("style", style),
    )


def _write_body(report: Report, page: RunPage, script: str, folder: str) -> Markup:
    island = Island(report)
    pairs = map_pairs(report, island.take(report.collector.results()))
    return element(
        "body",
        element("a", "Skip to the findings", class_="skip", href="#findings"),
        _write_header(report, page),
        element(
            "main",
            summary_section(page),
            findings_section(page, folder),
            roles_section(pairs),
            _write_map(),
            rest_section(page),
            *quality_section(sorted(report.collector.measured, key=place)),
            _write_flows(report),
            skipped_section(report),
            hosts_section(report),
        ),
        element("footer", element("p", keep_names(page.totals.text), class_="quiet")),
        raw_element("script", island.json(), type="application/json", id="data"),
        raw_element("script", script, type="module"),
    )


def _write_header(report: Report, page: RunPage) -> Markup:
    return element(
        "header",
        element("p", report.title or "netprobe", class_="brand"),
        element("h1", page.headline.verdict.text),
        *(
            element("p", keep_names(line.text), class_="alert" if line.style == "doubt" else None)
            for line in page.headline.beside
        ),
        element("ul", _count_items(report), class_="counts"),
        *(element("p", keep_names(line.text), class_="quiet") for line in page.origin),
        element("nav", element("ul", _list_links()), aria_label="Parts of this page"),
    )


def _count_items(report: Report) -> Iterator[Markup]:
    counts = report.summary.counts
    for verdict in WORST:
        count, word = counts.get(verdict, 0), verdict.replace("-", " ")
        if count or verdict in ("pass", "blocked"):
            yield element("li", make_sign(verdict), element("b", number(count)), f" {word}")


def _list_links() -> Iterator[Markup]:
    links = {
        "summary": "Summary", "findings": "Findings", "roles": "Who reaches whom",
        "rest": "Notes", "flows": "Flows", "skipped": "Skipped", "hosts": "Hosts",
    }  # fmt: skip
    for name, text in links.items():
        yield element("li", element("a", text, href=f"#{name}"))


def _write_map() -> Markup:
    """Give the place of the map of one cell; the program fills it."""
    return element(
        "section",
        element("h2", "Host by host", id="map-title"),
        element("p", id="map-words"),
        element("p", class_="quiet", id="map-place", role="status"),
        element("div", id="map-body"),
        element("details", id="map-list"),
        element("p", element("button", "Back to the roles (Esc)", type="button", id="map-close")),
        id="map",
        hidden=True,
        aria_labelledby="map-title",
    )


def _write_flows(report: Report) -> Markup:
    queries = {"": "All", "-verdict:pass": "Did not pass"}
    counts = report.summary.counts
    queries |= {f"verdict:{one}": one.replace("-", " ") for one in WORST if counts.get(one)}
    buttons = [
        element("button", text, type="button", data_query=query, aria_pressed="false")
        for query, text in queries.items()
    ]
    columns = ("Verdict", "From", "To", "Port", "Requirement", "Reason")
    heads = [element("th", text, scope="col") for text in columns]
    table = element(
        "table",
        element("thead", element("tr", *heads)),
        element("tbody", id="rows"),
        class_="listing",
        aria_label="Flows",
    )
    pages = [
        element("button", text, type="button", id=name)
        for name, text in (("before", "Previous"), ("after", "Next"))
    ]
    found = element("div", table, class_="wide", role="region", aria_label="Found", tabindex="0")
    return element(
        "section",
        element("h2", "Flows", id="flows-title"),
        element("noscript", element("p", "Searching all flows needs JavaScript.")),
        element(
            "div",
            _write_search(),
            element("div", *buttons, class_="searching", role="group", aria_label="Verdicts"),
            _write_help(),
            element("p", id="found", role="status"),
            found,
            element("div", *pages, element("span", id="place"), class_="searching"),
            data_script=True,
            hidden=True,
        ),
        id="flows",
        aria_labelledby="flows-title",
    )


def _write_search() -> Markup:
    field = element(
        "input",
        id="search",
        type="search",
        autocomplete="off",
        spellcheck="false",
        aria_describedby="found",
        placeholder="verdict:blocked from:worker-1 port:6443 -req:ntp",
    )
    return element("div", element("label", "Search", for_="search"), field, class_="searching")


def _write_help() -> Markup:
    words = (
        "Words must all be found; - before one leaves out what has it. Names match whole, * stands "
        "for anything, commas mean or: to:master,worker-*. The address of this page keeps the "
        "search. Keys: / search, arrows move, Enter opens, Esc leaves a map."
    )
    examples = [item for text in FILTERS for item in (element("code", text), " ")]
    return element(
        "details",
        element("summary", "How to search"),
        element("p", *examples),
        element("p", words),
    )
