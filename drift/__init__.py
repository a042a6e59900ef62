"""Whether the documents that the bundled matrices come from have changed since they were read.

Nothing of this is installed with netprobe: it is for the maintainers of the matrices.
"""
