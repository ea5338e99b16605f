"""Studies of recorded latencies: comparisons with a verdict."""
