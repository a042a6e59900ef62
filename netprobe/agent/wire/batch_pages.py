"""Pages of results: what one termination message of a pod holds, which is whole or refused.

``NPP1 PAGE LENGTH MAC CONTENT`` in ASCII: which page (from 1), how long the content is, and a MAC
over all of it under the host's result key. The content is base85 of zlib, with ``DICTIONARY``, of
messages, one a line: the page's header, then answers, each behind its order where that is the
host's own. Orders of the script are left out, because whoever made it has them.
"""

from base64 import b85encode
from typing import Any, Dict, List, NamedTuple, Tuple
from zlib import DEFLATED, MAX_WBITS, compressobj

from .batch import IN_RESULTS
from .frames import encode_message

try:
    from _blake2 import blake2b  # as templates.py does
except ImportError:
    from hashlib import blake2b

PAGE_FORMAT = 1
PAGE_PREFIX = "NPP1"
# Before words that are no page: why there is none.
WORDS_PREFIX = "netprobe: "
PAGE_MAC_LENGTH = 12
# What the kubelet keeps of a container's message, and of those of all containers of a pod.
MOST_MESSAGE_BYTES, MOST_POD_BYTES = 4096, 12288

# What pages are full of, the most frequent last: a short text is packed well only with it.
DICTIONARY = (
    b'["Fault","Routed","Walked","HelloLine","Closed","Resolved","Seen","StoryTold",true,false,'
    b'["Listening",[[[[],[],[],[],[],[]],[],[],[],[],[],[],false]]]\n'
    b'["StoryTold",,true,null,[[[[80,80]],[1,1,17,64,"eth0"],[1,1,17,64,"eth0"],null,[]]],[],[],'
    b'true,true,0,false]\n["PhaseClock",1,"begin",1,"listening",1,"probed",1,"tell",1,"told",'
    b'"no-answer","refused","host-unreachable","net-unreachable","no-route",null,null,null,null,9,'
    b'["EchoOutcomes",[["answer",null,null,true,"echo",null,null,64,null,null,null,null]],[[1,1,0,['
    b'],1]]]\n["ProbeOutcomes",[[1,1]],[["connect","no-answer",null,true,null,null,null,null,null,'
    b'null,3,null]],[[443,443,0,[null],1]],[]]\n["Done",false]\n["ProbeOutcomes",[[1,1]],[["answer",'
    b'null,null,true,"nonce",1,null,64,null,null,null,null]],[[443,443,0,[],1]],[]]\n'
)


class PageHeader(NamedTuple):
    """The first message of a page. ``page``: which one of the host and the round. ``failed_left``,
    ``others_left``: orders whose answers had no room on this page or those before it, by whether
    something of them was not as it should be."""

    format: int
    wire: int
    run: str
    round: int
    host: int
    name: str
    page: int
    failed_left: int
    others_left: int


IN_PAGES: Dict[str, Any] = dict(IN_RESULTS, **{PageHeader.__name__: PageHeader})


def limit_page(containers: int) -> int:
    """Give how many bytes of a message the kubelet keeps, of a pod with so many containers."""
    return min(MOST_MESSAGE_BYTES, MOST_POD_BYTES // containers)


def page_mac(key: bytes, page: int, content: bytes) -> bytes:
    """Give the MAC of a page: over its number and its content."""
    data = b"p%d %s" % (page, content)
    return b85encode(blake2b(data, key=key, digest_size=PAGE_MAC_LENGTH).digest())


def encode_page(key: bytes, header: PageHeader, texts: List[bytes]) -> bytes:
    """Give a page; ``texts`` are encoded messages, one or more a text."""
    packer = compressobj(9, DEFLATED, MAX_WBITS, 9, 0, DICTIONARY)
    packed = packer.compress(b"\n".join([encode_message(header), *texts])) + packer.flush()
    content = b85encode(packed)
    mac = page_mac(key, header.page, content)
    head: Tuple[Any, ...] = (PAGE_PREFIX.encode("ascii"), header.page, len(content), mac)
    return b"%s %d %d %s " % head + content
