"""The Grafana dashboard as code, and its provisioning through the `grafana-api` package.

`queries`, `variables` and `panels` are put together in `fleet`; `plan` compares the result with a server behind `port`,
and `backend` is that port over `grafana-api`, the only file that imports it.
"""
