"""Diagnoses: they decide between steps what to look at next, beside the pipeline, on its parts."""
