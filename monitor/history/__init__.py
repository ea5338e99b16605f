"""Latency history: interval histograms at rest, merged exactly, read last.

    recorder (exporters) -> spool: one row per interval and series -> roll-up -> history: one row per hour and series

`schema` says what a row is, `intervals` cuts them, `files` keeps them, `merge` adds them (C kernel, no Spark),
`rollup` adds very many (Spark), `importer` brings foreign HDR logs, `report` shows the result. Importing this package
loads none of them.
"""
