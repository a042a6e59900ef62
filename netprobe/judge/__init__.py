"""Evidence → verdicts and findings. Pure tables: the same evidence gives the same words."""
