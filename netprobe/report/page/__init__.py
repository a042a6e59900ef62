"""What all reports are made of: lines and fields, words, and how they reach a terminal."""
