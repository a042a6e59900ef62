"""Whether the documents that the bundled matrices come from have changed since they were read.

Nothing of this is installed with netprobe: it is for those who keep the matrices.
"""
