"""Pages: pure functions from a view to the content of each part of the page."""
