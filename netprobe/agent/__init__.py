"""The agent: runs on the node. Standard library only, Python 3.6 or later, no judgement."""
