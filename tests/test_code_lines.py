"""What counts as a line of code."""

from __future__ import annotations

from tests.code_lines import count_by_folder, count_code_lines

TEXT = '''\
"""A docstring
of two lines."""

import os  # counts, whatever stands behind it

# A comment.
WORDS = """a text
that is no docstring"""


def run() -> str:
    """A docstring."""

    return os.path.join(
        WORDS,
    )
'''


def test_blanks_comments_and_docstrings_are_no_code() -> None:
    """A text of several lines that is no docstring counts with all of them."""
    assert count_code_lines(TEXT) == 1 + 2 + 1 + 3


def test_a_folder_holds_what_lies_below_it() -> None:
    """Files of the package itself stand under a dot."""
    files = [("p/a.py", "x = 1\n"), ("p/b/c.py", "x = 1\n"), ("p/b/d/e.py", "x = 1\ny = 2\n")]
    assert count_by_folder(iter(files)) == {".": 1, "b": 3}
