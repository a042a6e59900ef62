"""Which network flows a Kubernetes platform requires are blocked, by whom, and how sure it is."""

__version__ = "0.1.0"
