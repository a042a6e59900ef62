"""Pages of docs/ that are printed from the definitions in netprobe/: `make docs`."""
