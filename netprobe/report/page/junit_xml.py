"""JUnit XML: suites and cases as values, and how they are written, whatever their texts hold.

The elements are those of Jenkins' junit-10.xsd: properties stand at the suite, evidence in texts.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple, TextIO
from xml.sax.saxutils import XMLGenerator
from xml.sax.xmlreader import AttributesImpl

from netprobe.model.printable import clean

# The child element of a test case that did not pass.
CaseFate = Literal["failure", "error", "skipped"]


class JunitCase(NamedTuple):
    """A test case; ``type``, ``message`` and ``lines`` are of one that did not pass.

    ``note`` is told of any.
    """

    class_name: str
    name: str
    fate: CaseFate | None = None
    type: str = ""
    message: str = ""
    lines: Iterable[str] = ()
    note: str = ""


class JunitSuite(NamedTuple):
    """The cases of one suite, and what is known of it."""

    name: str
    cases: Sequence[JunitCase]
    properties: Mapping[str, str] = {}


def write_suites(
    title: str, suites: Sequence[JunitSuite], started_at: str, elapsed_s: float, stream: TextIO
) -> None:
    """Write all suites, which began at the same time; ``started_at`` ends in Z."""
    # Everything is ASCII, so that no locale, pipe or editor can damage it.
    whole = io.BytesIO()
    xml = XMLGenerator(whole, "us-ascii", short_empty_elements=True)
    xml.startDocument()
    time = {"time": f"{elapsed_s:.3f}"}
    cases = [case for suite in suites for case in suite.cases]
    with _element(xml, "testsuites", {"name": title, **_count_fates(cases), **time}):
        for suite in suites:
            skipped = sum(case.fate == "skipped" for case in suite.cases)
            more = {"skipped": str(skipped), "timestamp": started_at.rstrip("Z"), **time}
            counts = {"name": suite.name, **_count_fates(suite.cases), **more}
            with _element(xml, "testsuite", counts):
                _write_suite(xml, suite)
    xml.endDocument()
    stream.write(f"{whole.getvalue().decode()}\n")


def _write_suite(xml: XMLGenerator, suite: JunitSuite) -> None:
    if suite.properties:
        with _element(xml, "properties", {}):
            for name, value in suite.properties.items():
                with _element(xml, "property", {"name": name, "value": value}):
                    pass
    for case in suite.cases:
        with _element(xml, "testcase", {"name": case.name, "classname": case.class_name}):
            if case.fate is not None:
                with _element(xml, case.fate, {"type": case.type, "message": case.message}):
                    xml.characters("\n".join(map(_clean_text, case.lines)))
            if case.note:
                with _element(xml, "system-out", {}):
                    xml.characters(case.note)


def _count_fates(cases: Iterable[JunitCase]) -> dict[str, str]:
    fates = [case.fate for case in cases]
    return {
        "tests": str(len(fates)),
        "failures": str(fates.count("failure")),
        "errors": str(fates.count("error")),
    }


@contextmanager
def _element(xml: XMLGenerator, name: str, attributes: Mapping[str, str]) -> Iterator[None]:
    xml.startElement(name, AttributesImpl({at: _clean_text(one) for at, one in attributes.items()}))
    yield
    xml.endElement(name)


def _clean_text(text: str) -> str:
    """Give one line of characters that XML 1.0 permits."""
    return clean(text).replace("\ufffe", "").replace("\uffff", "")
