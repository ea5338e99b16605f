"""The Grafana boards as code, and their provisioning through the `grafana-api` package.

`boards` combines `queries`, `variables`, `limits`, `links` and `panels`. `plan` compares the result with a server
behind `port`. `backend` implements that port over `grafana-api`; it is the only file that imports the package.
"""
