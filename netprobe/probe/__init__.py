"""Plan → evidence: agents, rounds of listeners, orders, localisation. Decides no verdict."""
