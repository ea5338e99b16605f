"""The live page: one sampler, one store, one timer, many figures.

A page reads a `View` from `store`; `figures` turn it into charts, and `pages` place them.  Nothing here reads a
segment.
"""
