"""Tests of what is measured of silent connections; the labs are in tests/lab."""
