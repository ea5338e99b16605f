"""The live page: one sampler, one store, one timer, many figures.

A page asks `store` for a `View`; `figures` turn it into charts and `pages` place them.  Nothing here knows the segment.
"""
