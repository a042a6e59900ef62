"""What is asked beside a plan's flows: by the coordinator's checks, and by a host that is alone.

Both must ask alike, because a merge reads what the host asked as if a check had asked it.
"""

# A walk ends after so many routers.
MAX_TTL = 16
# Ports that no matrix names; the first that the flows do not need must be closed.
CONTROL_PORTS = (64999, 61113, 59387)
# How long a check's look waits: two SYNs, because the kernel sends the second after 1 s.
CHECK_MS = 1500
# A look at a host that never answered, which may be far away; this is also long enough for the
# kernel's second SYN, which tells whether packets leave this host.
UNKNOWN_MS = 1300
# A look at TCP is one connect, and at anything else so many packets.
DATAGRAMS = 3
# The nonces on connections that opened, as ``StoryOrder.proto`` names them.
NONCES = "tcp-nonce"
# What comes back on a connection that opened, and is no answer to the nonce.
UNANSWERED = ("silent", "closed", "reset")
