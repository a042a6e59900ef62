"""`netprobe watch`: runs over one fleet, again and again, and the outages between them.

clock      times of looks: labels that never go back, and whether this process stood still
flows      results by their flows and ports
blind      hosts that nothing can be found out of
held       ports that services hold: no listener is ever opened there
looking    one look: a request over the fleet, and what it saw
suspects   which failures become outages
keeping    the ledger, and what begins and ends in it
watch      rounds, suspects, pauses
"""
