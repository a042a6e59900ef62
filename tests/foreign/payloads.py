"""What hostile texts hold, one a way out of a syntax, and the places of texts in a document."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

Place = tuple[Any, ...]

# Each would leave the file OWNED, a further rule, element or key, or act on a terminal.
PAYLOADS: Mapping[str, str] = {
    # Shells. A command that is in no folder of PATH is told on standard error.
    "sh-semicolon": "; /bin/touch OWNED #",
    "sh-substitution": "$(/bin/touch OWNED)",
    "sh-backquotes": "`/bin/touch OWNED`",
    "sh-single": "'; /bin/touch OWNED; '",
    "sh-double": '"; /bin/touch OWNED; "',
    "sh-line": "x\n/bin/touch OWNED\n",
    "sh-return": "x\r/bin/touch OWNED\r",
    "sh-pipe": "| /bin/touch OWNED",
    "sh-ampersand": "& /bin/touch OWNED &",
    "sh-redirect": "> OWNED",
    "sh-variable": "${IFS}$IFS${x:=/bin/touch OWNED}",
    "sh-escape": "\\\n/bin/touch OWNED",
    "sh-option": "--modprobe=/bin/touch",
    "ps-quote": "\u2019; New-Item OWNED #",
    "ps-substitution": "$(New-Item OWNED)",
    # Firewalls and devices.
    "nft-braces": "} ; flush ruleset ; add table x {",
    "nft-string": '" accept ; flush ruleset #',
    "nft-line": "x\nflush ruleset\n",
    "nft-include": 'include "/etc/passwd"',
    "sed-script": "\\1/w OWNED",
    "ios-line": "x\r\nno access-list OUTSIDE\r\n!",
    "junos-comment": "*/ delete security /*",
    "fortios-end": 'x"\nend\nconfig system admin',
    "any": "0.0.0.0/0",
    "address-list": "10.0.0.1,0.0.0.0",
    # Files of data.
    "yaml-item": "x\n- evil: true\n",
    "yaml-key": "x: {evil: true}",
    "yaml-tag": "!!python/object/apply:os.system ['/bin/touch OWNED']",
    "yaml-anchor": "&a [*a]",
    "yaml-document": "x\n---\nevil: true\n",
    "yaml-comment": "# x",
    "jinja": "{% raw %}{{ lookup('pipe', '/bin/touch OWNED') }}{% endraw %}",
    "json-string": '", "evil": "',
    "xml-element": "]]></failure><evil/>",
    "xml-attribute": "\"/><evil a='\"",
    "xml-entity": '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>&e;',
    "xml-no-character": "\x00\x0b\ufffe\uffff",
    "html-script": "<script>alert(1)</script>",
    "html-end": "</script><img src=x onerror=alert(1)>",
    "csv-formula": "=cmd|' /C calc'!A0",
    "csv-at": "@SUM(1+1)*cmd|' /C calc'!A0",
    "csv-cell": '";=1+1;"\t=1\r\n=1',
    "csv-plus": "+1-1",
    "hcl-template": '${file("/etc/passwd")}%{ for x in y }',
    "hcl-block": '"\n}\nresource "evil" "x" {',
    "hcl-comment": "*/ // # /*",
    "md-link": "[x](javascript:alert(1)) ![x](http://x/y)",
    "md-html": "<b>@all</b> | a | b |\n# x",
    "github": "x\n::error::evil%0A::add-mask::x",
    # Terminals.
    "ansi-title": "\x1b]0;evil\x07",
    "ansi-colour": "\x1b[31mred\x1b[2J",
    "c1": "\x9b2J\x9d0;evil\x9c",
    "bidi": "\u202eevil\u2066\u061c\u200f",
    "invisible": "\u200b\u2060\ufeff\u00ad",
    "line-ends": "a\u2028b\u2029c\x85d\x0be\x0cf",
    "controls": "\x00\x01\x07\x08\x7f",
    "surrogate": "\ud800",
    "long": "a" * 5000,
    "empty": "",
}  # fmt: skip


def texts_in(value: Any, way: Place = ()) -> Iterator[tuple[Place, str]]:
    """Give every text of a document with its place."""
    if isinstance(value, str):
        yield way, value
    elif isinstance(value, dict | list):
        for step, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts_in(inner, (*way, step))


def kind_of(way: Place) -> Place:
    """Give the place without its indices: texts of one kind are read and written alike."""
    return tuple("[]" if isinstance(step, int) else step for step in way)


def put_text(document: Any, way: Place, text: str) -> Any:
    """Give a copy that holds another text at this place."""
    document = copy.deepcopy(document)
    parent = document
    for step in way[:-1]:
        parent = parent[step]
    parent[way[-1]] = text
    return document


def rename_texts(value: Any, names: Mapping[str, str]) -> Any:
    """Give a copy with the texts renamed that have another name."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {key: rename_texts(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [rename_texts(inner, names) for inner in value]
    return value
