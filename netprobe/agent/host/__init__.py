"""What this host says of itself: routes, owners of ports, names."""
