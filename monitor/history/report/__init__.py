"""The report of a latency history: figures with their uncertainty, sections of the page, and the page itself."""
