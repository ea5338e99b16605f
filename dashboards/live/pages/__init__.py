"""Pages: pure functions from a view to what stands in each place of the page."""
