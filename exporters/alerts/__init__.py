"""Alerts: the rules of Prometheus and Grafana and the routes of Alertmanager, from one settings file."""
