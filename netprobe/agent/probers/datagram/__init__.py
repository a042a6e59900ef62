"""UDP datagrams and raw IP protocols."""
