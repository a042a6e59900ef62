"""Large estates, in the long form: ``make reach``."""
