"""The last stage: a finished run becomes text, JSON or a record; it judges nothing."""
