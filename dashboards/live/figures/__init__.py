"""Charts: pure functions from points to a Plotly figure, one file per chart."""
