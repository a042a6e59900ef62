"""Every start of the travelling Python: its libc and its OpenSSL live on a host that is not theirs.

This libc has the name services of files and DNS in itself. Any other is a library of the host,
which is made for the host's libc: it would not be found, or end the process. OpenSSL looks for
certificate authorities where Debian keeps them.
"""

import os
import re

# The services that this libc has, for each database that Python asks.
_SERVICES = {"hosts": ("files", "dns"), "passwd": ("files",), "group": ("files",)}
_OWN_AUTHORITIES = ("/usr/lib/ssl/cert.pem", "/usr/lib/ssl/certs")
_AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # RHEL, Fedora
    "/etc/pki/tls/certs/ca-bundle.crt",  # older ones of these
    "/etc/ssl/ca-bundle.pem",  # SLES
    "/var/lib/ca-certificates/ca-bundle.pem",  # newer ones of these
    "/etc/ssl/cert.pem",  # Alpine
)


def _read_services(text: str) -> "dict[str, tuple[str, ...]]":
    """Give what nsswitch.conf asks, for each database that names a service which is not here."""
    found = {}
    for line in text.splitlines():
        name, colon, rest = line.partition("#")[0].partition(":")
        words = re.sub(r"\[[^]]*\]", " ", rest).split()
        own = _SERVICES.get(name.strip())
        if colon and own is not None and not set(words) <= set(own):
            found[name.strip()] = tuple(one for one in words if one in own) or own
    return found


def _use_own_services() -> None:
    try:
        with open("/etc/nsswitch.conf", encoding="utf-8", errors="replace") as file:
            asked = _read_services(file.read())
    except OSError:
        # What glibc asks without the file differs from release to release.
        asked = _SERVICES
    if asked:
        import ctypes  # noqa: PLC0415

        for database, services in asked.items():
            words = " ".join(services).encode()
            ctypes.CDLL(None).__nss_configure_lookup(database.encode(), words)


def _use_authorities_of_host() -> None:
    if os.environ.keys() & {"SSL_CERT_FILE", "SSL_CERT_DIR"}:
        return
    if not any(os.path.exists(path) for path in _OWN_AUTHORITIES):
        found = next((path for path in _AUTHORITIES if os.path.isfile(path)), None)
        if found is not None:
            os.environ["SSL_CERT_FILE"] = found


_use_own_services()
_use_authorities_of_host()
