"""The kit of pages that are one file: style sheet, charts as SVG, and the shell with its parts. Nothing is fetched."""
