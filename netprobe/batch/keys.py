"""The keys of a run: one by which probes are answered, and one for what each host writes."""

from __future__ import annotations

from hashlib import blake2b

KEY_BYTES = 32


def derive_result_key(results_key: bytes, host: int) -> bytes:
    """Give the key of one host's results, by its index.

    Who has it gets neither to ``results_key`` nor to the key of another host.
    """
    return blake2b(b"results of host %d" % host, key=results_key, digest_size=KEY_BYTES).digest()
