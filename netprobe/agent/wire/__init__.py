"""The wire: what coordinator and agent say to each other, as typed values."""
