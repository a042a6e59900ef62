"""The packet recorder: what this host's network devices sent and received of the run's probes."""
