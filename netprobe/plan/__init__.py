"""Matrix × inventory → plan. Pure: no file, no clock, no network."""
