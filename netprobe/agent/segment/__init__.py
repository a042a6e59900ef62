"""The network segments of this host: who shares virtual addresses there, and who has an address."""
