"""The page for people who have no netprobe: one HTML file, its data, its program, its looks."""
