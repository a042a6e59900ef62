"""The page for people who have no netprobe: one HTML file, its data, its program, its looks.

``island`` has all flows as data, ``elements`` make HTML that no text breaks out of. Scripts and
styles stand in the page as they are: no build step, ASCII only.
"""
