"""The diagnosis of Konnectivity tunnels of a hosted control plane."""
