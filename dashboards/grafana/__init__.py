"""The Grafana dashboard as code, and its provisioning through the `grafana-api` package.

`fleet` combines `queries`, `variables` and `panels`. `plan` compares the result with a server behind `port`. `backend`
implements that port over `grafana-api`; it is the only file that imports the package.
"""
