"""The pages of every verb but ``run``: for people and for programs."""
