"""What agents can rehearse, by the word of ``--rehearse``: one file each.

A rehearsal is a part of the platform that agents play for a moment, such as the tunnel of an
overlay. Four places say it: ``plan/rehearsals.py`` which flows there are beside those of rows, a
file here (and a line of ``table.py``) how agents play it, ``judge/rehearsed.py`` what it means, and
``model/rehearsal_reasons.py`` its reasons. The word stands in ``REHEARSALS`` of ``model/plan.py``.
It comes after all is probed, when no listener of the run holds a port.
"""
