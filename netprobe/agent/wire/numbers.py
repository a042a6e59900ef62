"""How large the numbers of messages may be, by the names of their fields; none is below zero.

What a host says ends in sums, waits, dates and tables of others, so that no number may be larger
than what its field can mean. Every number of every message stands here (a test looks).
"""

from typing import Dict

MAX_PORT = 65535
_BYTE, _SHORT, _WORD = 255, 65535, (1 << 32) - 1
# Streams count from 2^40.
_ID = (1 << 48) - 1
# What a host can count while a run lasts.
_COUNT = (1 << 53) - 1
# Any count of the kernel's.
_KERNEL = (1 << 64) - 1
_DAY_S = 86400
# Times since 1970, to the year 6325: programs have dates up to the year 9999. In ns, 64 bits with a
# sign end in 2262.
_TIME_S = 1 << 37
_TIME_NS = (1 << 63) - 1
_MINUTE_US = 60 * 1000000

_NAMES = (
    (MAX_PORT, "port ports remote_port own_ports sport first last up denied skipped"),
    (MAX_PORT, "node_ports client_ports datagrams keep"),
    # Of protocols, ICMP errors and TTLs; families of addresses are 4 and 6.
    (_BYTE, "type code ttl min_ttl max_ttl family"),
    # Indices of hosts and places in an order have 16 bits; so have offsets in a packet.
    (_SHORT, "host by places picks nonce_at mac_at host_at copies"),
    (_SHORT, "looks walks routes stories burst syns cores page samples"),
    # Places in lists, numbers of templates, protocols and orders; ids of processes and users.
    (_WORD, "kind owners template number order orders round own_ids pid uid wire format"),
    # Lengths and widths in bytes: a device may be set to any width.
    (_WORD, "size mss mtu dev_mtu length bytes"),
    # A VXLAN network id has 24 bits; a trial sends much less than this.
    ((1 << 24) - 1, "network"),
    (_WORD, "tunnel took_us"),
    # HSRP has the widest of both.
    (_WORD, "group priority"),
    # What names packets: of orders, of SYNs, of orders with a place in them.
    (_ID, "id numbers stream"),
    (_COUNT, "least most packets lost left_out awaits failed_left others_left"),
    (_KERNEL, "tcp nofile stopped held segments"),
    (_TIME_S, "wall_s starts_at ends_at"),
    (_TIME_S * 1000000, "clock_us"),
    (_TIME_NS, "first_ns time_ns"),
    (_DAY_S, "silence_s window_s margin_s"),
    (_COUNT, "per_s"),
    (30 * _DAY_S * 1000, "ms first_ms look_ms interval_ms timeout_ms elapsed_ms"),
    (30 * _DAY_S * 1000, "since_sent_ms ago_ms lasted_ms waited_ms"),
    (_MINUTE_US // 1000, "window_ms gap_ms"),
    # No network takes so long, and no host that is short of time either.
    (60 * _MINUTE_US, "rtt_us rtts_us"),
)
MOST: Dict[str, int] = {name: most for most, names in _NAMES for name in names.split()}
