"""A tunnel of the kernel, played for a moment in a namespace of its own."""
