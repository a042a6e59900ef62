"""Texts without names: what the run knows goes in any spelling, and what looks like a name, too.

Each rule goes on where the one before ended: the time is that of the length of a text.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from functools import cache

from netprobe.report.page.wording import HOLES

SEPARATORS = re.compile("([._:-]+)")
# Words with a number that name no host: protocols, ciphers, interfaces, machines.
_TECHNICAL = re.compile(
    r"(?:ip|inet|tcp|udp|icmp|http|tls|ssl|ssh|dtls|dns|ntp|ike|bgp|ospf|grpc|sctp|oauth|ldap|smb|nfs"
    r"|sha|md|aes|rsa|dsa|ecdsa|ed|curve|crc|base|utf|iso|chacha|poly|gcm|ctr|cbc|secp|prime"
    r"|eth|en[opsx]\w*|wl\w*|ib|bond|team|br|vmbr|virbr|docker|cni|vlan|veth\w*|cali\w*|cilium\w*"
    r"|lxc\w*|vxlan\w*|genev\w*|gre\w*|tunl|tun|tap|wg|ipvs|ipip|dummy|ovn\w*|kube-ipvs|lo|ifb"
    r"|amd|arm|armv|aarch|ppc|riscv|mips|python|py|port|ports|phase|version|level|step|stage"
    r"|vrrp|hsrp|rfc|pid|uid|gid|fd|code|type|status|errno|signal|gc|thresh|day|mtu|ttl|table|rule|finding)"
    r"(?:[-_.]?v?\d.*)?",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"[^\W\d_]{2,}\d+[^\W\d_]?")

# One of up-to-10 is not a name.
_JOINING = ("to", "of", "no", "in", "at", "as", "or", "and", "per")

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def fold_name(name: str) -> str:
    """Give the form in which names are compared: files and groups have _ where DNS has -."""
    return name.lower().replace("_", "-")


def read_address(text: str) -> IPAddress | None:
    """Give the address that a text is; None for any other."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def has_number(text: str) -> bool:
    """Tell names such as worker77 or secret_host_1 from versions, protocols and interfaces."""
    words = SEPARATORS.split(text)[::2]
    if not text[:1].isalpha() or _TECHNICAL.fullmatch(text):
        return False
    return any(map(_is_numbered, ["", *words], words))


def _is_numbered(before: str, word: str) -> bool:
    """Tell whether a word ends in a number, or is one behind a word."""
    name = before if word.isdigit() else word
    if _TECHNICAL.fullmatch(name):
        return False
    behind = word.isdigit() and len(name) > 1 and name.isalpha() and name.lower() not in _JOINING
    return behind or _NUMBERED.fullmatch(word) is not None


def spell_name(name: str) -> Iterator[str]:
    """Give what a name may look like elsewhere: an address as a number, a host without domain."""
    address = read_address(name)
    if address is not None:
        yield from _spell_address(address)
    elif any(map(str.isdigit, name.partition(".")[0])):
        yield name.partition(".")[0]


def _spell_address(address: IPAddress) -> Iterator[str]:
    raw, number = address.packed.hex(), int(address)
    pairs = re.findall("..", raw)
    yield from (raw, f"0x{raw}", f"0x{number:x}", str(number), ":".join(pairs))
    # As the kernel prints it (/proc/net/tcp): each 32 bits as this machine holds them.
    yield "".join("".join(pairs[at : at + 4][::-1]) for at in range(0, len(pairs), 4))
    for text in (str(address), address.exploded):
        yield re.sub("[.:]", "-", text)
        yield text


_HOLES = re.escape("".join(HOLES))
# A sign of a word, and of a value: no space, quote or bracket, and no hole for a name.
_SIGN, _VALUE = rf"[^\s{_HOLES}]", rf"[^\s,;/+\"'(){_HOLES}]"
_HOST = r"(?:\[[0-9a-f:.]++\]|[\w.-]*\w)?"
# Each begins where a word does, or behind fixed words, and takes all of it (++ gives nothing back).
_RULES = {
    # http://user:password@host, user@host
    "site": rf"(?<=://)(?:[^\s/?#{_HOLES}]*@)?{_HOST}",
    "login": rf"(?<![\w.+-])[\w.+-]++@(?=\S){_HOST}",
    # /home/user, C:\Users\user, ssh -l user, uid=1000(user), ~user
    "user": r"(?:(?<=/home/)|(?<=/users/)|(?<=\\home\\)|(?<=\\users\\)|(?<= -l ))[^\s/\\:\"'`,;)]++"
    r"|(?<=\d\()[^\s()]++(?=\))|(?<![\w~])~[a-z_][\w.-]*+",
    # Of certificates and accounts: CN=worker77, O=Acme Corp, DNS:a.example, system:node:worker77
    "value": r"(?P<of>(?<![\w-])(?-i:CN|OU|O|L|ST|DC|UID|emailAddress|serialNumber) ?= ?"
    rf"|(?<!\w)DNS:(?=\S)|system:(?:node|serviceaccount|bootstrap):)"
    rf"{_VALUE}++(?: (?-i:[A-Z0-9]){_VALUE}*+)*+",
    # The words of ssh; clusters, node pools, networks and identity providers of manifests.
    "told": rf"(?<=hostname )[^\s:{_HOLES}]++|(?<=host ){_SIGN}+(?= port)|(?<=`ssh )[^`{_HOLES}]++"
    rf"|(?<=ssh ){_SIGN}+(?= ended)"
    rf"|(?:(?<= by )|(?<= to )|(?<= with ))(?!tcp|udp){_SIGN}+(?= port \d)"
    r"|(?<=HostedCluster )[^\s:]++|(?<=NodePool )[^\s:]++|(?<=secondary network )[^\s,;:]++"
    r"|(?<=--network )[^\s=']++|(?<=--network ')[^=']++|(?<=identity provider )\S++",
    # 52:54:00:12:34:56, also with dashes, and as 5254.0012.3456, 525400-123456, 525400123456
    "mac": r"(?<![\w:.-])(?:[0-9a-f]{1,2}(?P<to>[:-])(?:[0-9a-f]{1,2}(?P=to)){4,18}[0-9a-f]{1,2}"
    r"|[0-9a-f]{4}(?P<dot>[.:])[0-9a-f]{4}(?P=dot)[0-9a-f]{4}|[0-9a-f]{6}-?[0-9a-f]{6})(?![\w:-])",
    "address": r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)"
    r"|(?<![\w:.])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?:\d{0,3}(?:\.\d{1,3}){3})?(?![\w:])",
    "commas": r"(?<![\w,])\d{1,3}(?:,\d{1,3}){3}(?!\w|,\d)",
    # Names folded to worker-[1-40].
    "hosts": r"(?<![\w.-])[\w.-]*+\[\d++-\d++\][\w.-]*+",
    "domain": r"(?<![\w.-])[\w-]++(?:\.[\w-]++)*\.[a-z][a-z0-9-]++(?![\w-])",
    "word": r"[^\W_]++(?:[._:-]++[^\W_]++)*+",
}  # fmt: skip
_LOGINS = re.compile(
    rf"(?<=://)[^\s/?#:@]++(?=[^\s/?#]*@)|(?<![\w.+-])[\w.+-]++(?=@\S)|{_RULES['user']}",
    re.IGNORECASE,
)


class HiddenNames:
    """Gives the new names of one run; what was once called host-3 stays host-3.

    First all names that are known are listed, then texts are hidden. ``public`` are words that
    stay: roles, matrices, requirements.
    """

    def __init__(self, public: Iterable[str]) -> None:
        self._public = set(map(fold_name, public))
        self._new: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        # By its folded spelling what is listed, and how many words between separators one has.
        self._spellings: dict[str, str] = {}
        self._most_words = 1
        self._odd: set[str] = set()
        self._rules = _compile_rules(())
        self.text = cache(self._hide_names)

    def list_names(self, names: Iterable[str | None], kind: str) -> None:
        """Take names of the run, all of one kind."""
        for name in sorted({name for name in names if name}):
            new = self.name_anew(name, kind)
            self._list_spelling(name, new)
            for spelling in spell_name(name):
                if fold_name(spelling) not in self._public:
                    self._list_spelling(spelling, new)
        self._rules = _compile_rules(self._odd)

    def list_logins(self, names: Iterable[str | None], texts: Iterable[str]) -> None:
        """Take the logins of people, and those that texts have, where it is seen that they are."""
        found = {login for text in texts for login in _LOGINS.findall(text)}
        for name in {name for name in names if name} | found:
            if fold_name(name) not in self._public | {"root", "user"}:
                self._list_spelling(name, "user")

    def name_anew(self, old: str, kind: str) -> str:
        """Give the new name of something, the next of its kind where it has none."""
        if old not in self._new:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._new[old] = f"{kind}-{self._counts[kind]}"
            self._new.setdefault(old.lower(), self._new[old])
        return self._new[old]

    def _list_spelling(self, spelling: str, new: str) -> None:
        """List what may stand in texts; of one letter it would be found in any sentence."""
        words = SEPARATORS.split(spelling)[::2]
        if len(spelling) < 2 or read_address(spelling):
            self._spellings.setdefault(fold_name(spelling), new)
        elif all(map(str.isalnum, words)):
            self._spellings.setdefault(fold_name(spelling), new)
            self._most_words = max(self._most_words, len(words))
        else:
            self._odd.add(spelling)

    def _hide_names(self, text: str) -> str:
        if text in self._new:
            return self._new[text]
        return self._rules.sub(self._hide_match, text)

    def _hide_match(self, found: re.Match[str]) -> str:
        text, kind = found[0], str(found.lastgroup)
        if kind == "word":
            return "".join(self._hide_words(SEPARATORS.split(text)))
        if kind == "hosts":
            return "several hosts"
        if kind == "user":
            return text if text == "root" else "user"
        if kind in ("site", "login"):
            login, at, host = text.rpartition("@")
            return f"{login and 'user'}{at}{self._hide_host(host)}"
        if kind == "value":
            return found["of"] + self._rename_text(text.removeprefix(found["of"]), "name")
        if kind == "commas":
            return self._spellings.get(text.replace(",", "."), text)
        if kind in ("address", "told"):
            return self._hide_host(text) if kind == "told" else self._hide_address(text)
        return self._rename_text(text, "address" if kind == "mac" else "name")

    def _hide_host(self, text: str) -> str:
        """Hide what stands where only a host can stand."""
        bare = text.strip("[]")
        if not bare:
            return text
        hidden = self._hide_address(bare) if read_address(bare) else self._rename_text(bare, "name")
        return text.replace(bare, hidden)

    def _hide_address(self, text: str) -> str:
        """Hide an address of somebody, not 0.0.0.0, loopback, and what is no address: 10:00:00."""
        address = read_address(text)
        if address is None:
            return "".join(self._hide_words(SEPARATORS.split(text)))
        if address.is_unspecified or address.is_loopback:
            return text
        return self._rename_text(str(address), "address")

    def _rename_text(self, text: str, kind: str) -> str:
        known = self._new.get(text) or self._spellings.get(fold_name(text))
        return known or self._new.get(text.lower()) or self.name_anew(text, kind)

    def _hide_words(self, parts: list[str]) -> Iterator[str]:
        """Hide what is listed in words and separators such as vm_worker77_disk, longest first."""
        place, rest = 0, list[str]()
        while place < len(parts):
            count, new = self._find_listed(parts, place)
            if new is None:
                rest += parts[place : place + 2]
                place += 2
            else:
                yield self._hide_unlisted("".join(rest))
                yield new
                place += 2 * count
                rest = parts[place - 1 : place]
        yield self._hide_unlisted("".join(rest))

    def _find_listed(self, parts: list[str], place: int) -> tuple[int, str | None]:
        """Find the name that begins here: of how many words, and its new one."""
        for count in range(self._most_words, 0, -1):
            words = parts[place : place + 2 * count - 1]
            new = self._spellings.get(fold_name("".join(words)))
            if new is not None and len("".join(words)) > 1:
                return (len(words) + 1) // 2, new
        return 0, None

    def _hide_unlisted(self, text: str) -> str:
        """Hide what nothing lists and looks like the name of a host."""
        word = text.strip("._:-")
        if fold_name(word) in self._public or not has_number(word):
            return text
        return text.replace(word, self._rename_text(word, "name"))


def _compile_rules(odd: Iterable[str]) -> re.Pattern[str]:
    """Put the rules into one; ``odd`` are names that are more than words and separators."""
    names = "|".join(map(re.escape, sorted(odd, key=len, reverse=True)))
    rules = {"odd": rf"(?<![^\W_])(?:{names})(?![^\W_])"} if names else {}
    pattern = "|".join(f"(?P<{name}>{rule})" for name, rule in {**rules, **_RULES}.items())
    return re.compile(pattern, re.IGNORECASE)
