"""`netprobe watch`: runs over one fleet, again and again, and the outages between them.

clock      times of looks: labels that never go back, and whether this process stood still
flows      results by their flows and ports
blind      hosts that nothing can be found out of
maintenance hosts that may be down now
held       ports that services hold: no listener is ever opened there
looking    one look: a request over the fleet, and what it saw
suspects   which failures become outages
keeping    the ledger, and what begins and ends in it
round      what a round saw: a look of the ledger, and a run's file
ways       the ways of packets, and what changes in them
metrics    the metrics for Prometheus
asking_for the firewall rules that would end an outage
notify     who is told of outages, and what was told already
watch      rounds, suspects, pauses
"""
