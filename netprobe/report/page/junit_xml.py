"""Elements of JUnit XML, whatever the texts in them hold."""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import XMLGenerator
from xml.sax.xmlreader import AttributesImpl

from netprobe.model.printable import clean


def start_element(xml: XMLGenerator, name: str, attributes: Mapping[str, str]) -> None:
    """Begin an element."""
    cleaned = {key: clean_text(value) for key, value in attributes.items()}
    xml.startElement(name, AttributesImpl(cleaned))


def clean_text(text: str) -> str:
    """Give one line of characters that XML 1.0 permits."""
    return clean(text).replace("\ufffe", "").replace("\uffff", "")
