"""The long forms of what netprobe reaches: `make reach` runs each module by itself."""
