"""Two views of the fleet: the live page (`live`) and the Grafana dashboard (`grafana`).

Both read the monitor's model and the catalogue's names. Neither reads a segment, and they are independent of each
other.
"""
