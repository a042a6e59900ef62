"""The clocks of workers: against ours, against each other, and against the dates of certificates.

An agent's TLS library judges certificates by the clock of its own host, so that is the one that
counts; how far it is from ours is measured when the agent starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from netprobe.files import read_file
from netprobe.konnectivity.findings import Log
from netprobe.model.konnectivity import Diagnosis
from netprobe.protocols.services.tls import Identity
from netprobe.protocols.services.tls_certificates import (
    Certificate,
    Invalidity,
    read_certificate,
    read_pem,
)

# More than NTP leaves anywhere. Certificates are made valid an hour before they are used, or less.
MOST_SKEW_S = 60.0
# OpenSSL's codes for a chain whose dates do not hold (X509_V_ERR_CERT_NOT_YET_VALID, ..._EXPIRED).
OF_DATES = (9, 10)
_UNITS = (("days", 86400), ("hours", 3600), ("minutes", 60), ("s", 1))

# What Go says to them.
DATES_LOG = "certificate has expired or is not yet valid: current time ..."
Dated = tuple[str, str, Mapping[str, Any]]


def look_at_clock(skew_s: float, identity: Identity | None, log: Log) -> None:
    """Compare the worker's clock with ours, and both with the dates of ``--client-cert``."""
    log.skew_s = round(skew_s, 1)
    facts = {"skew_s": log.skew_s}
    if abs(skew_s) <= MOST_SKEW_S:
        log.add("clock", "ok", "the worker's clock agrees with this machine's", facts)
    else:
        said = f"the worker's clock is {word_skew(skew_s)} this machine's"
        log.add("clock", "doubt", said, facts)
        log.warnings.append(said)
    if identity is not None:
        log.warnings += _warn_of_own_certificate(identity, skew_s)


def _warn_of_own_certificate(identity: Identity, skew_s: float) -> list[str]:
    """No agent looks at its own certificate's dates: the server does, by its clock."""
    read = read_pem(read_file(identity.certificate, "a file in PEM"))
    if read is None:
        return []
    dates = f"it is valid from {read.not_before} to {read.not_after}"
    invalidity = read.invalidity_at(datetime.now(UTC))
    if invalidity is not None:
        return [f"--client-cert is {invalidity}: {dates}"]
    invalidity = read.invalidity_at(clock_of(skew_s))
    if invalidity is None:
        return []
    return [f"by the worker's clock --client-cert is {invalidity} ({dates}); the server's decides"]


def judge_dates(chain: Sequence[bytes], skew_s: float) -> Dated | None:
    """Give verdict, sentence and evidence where the worker's clock makes the chain invalid."""
    theirs = _find_invalid(chain, clock_of(skew_s))
    if theirs is None:
        return None
    certificate, invalidity = theirs
    evidence = {
        "not_before": certificate.not_before,
        "not_after": certificate.not_after,
        "invalid": certificate.subject,
        "invalidity": invalidity,
        "skew_s": round(skew_s, 1),
        "skew": word_skew(skew_s),
        "x509": DATES_LOG,
    }
    words = "the certificate is valid from {not_before} to {not_after}"
    if abs(skew_s) <= MOST_SKEW_S or _find_invalid(chain, datetime.now(UTC)) is not None:
        return "CERT_EXPIRED", words, evidence
    words = "{invalid} is valid from {not_before} to {not_after}; the worker's clock is {skew} this"
    return "CERT_INVALID_BY_CLOCK", words + " machine's", evidence


def _find_invalid(chain: Sequence[bytes], when: datetime) -> tuple[Certificate, Invalidity] | None:
    for der in chain:
        certificate = read_certificate(der)
        if certificate is not None:
            invalidity = certificate.invalidity_at(when)
            if invalidity is not None:
                return certificate, invalidity
    return None


def compare_clocks(diagnoses: Sequence[Diagnosis]) -> tuple[str, ...]:
    """Hold the workers' clocks against each other: are they apart, or is ours the odd one?"""
    skews = {one.worker: one.skew_s for one in diagnoses if one.skew_s is not None}
    if len(skews) < 2:
        return ()
    last, first = min(skews, key=skews.__getitem__), max(skews, key=skews.__getitem__)
    apart_s = skews[first] - skews[last]
    if apart_s > MOST_SKEW_S:
        return (f"the clock of {first} is {word_skew(apart_s)} that of {last}",)
    if min(map(abs, skews.values())) > MOST_SKEW_S:
        return ("the workers' clocks agree with each other: look at this machine's clock first",)
    return ()


def clock_of(skew_s: float) -> datetime:
    """Give the time that a clock shows which is so far ahead of ours."""
    try:
        return datetime.now(UTC) + timedelta(seconds=skew_s)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def word_skew(skew_s: float) -> str:
    """Word how far a clock is from another: ``400 days ahead of``."""
    ago = abs(skew_s)
    unit, seconds = next(each for each in _UNITS if ago >= 1.99 * each[1] or each[1] == 1)
    return f"{ago / seconds:.0f} {unit} {'ahead of' if skew_s > 0 else 'behind'}"
