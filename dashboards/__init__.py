"""What is seen: the live page (`live`) and the Grafana dashboard (`grafana`).

Both read the monitor's model and the catalogue's names; neither knows the segment, and they do not know each other.
"""
