"""The lab: congestion control on trial, with the engine's own code on virtual time.

A scenario (`scenario`) says what is on the network and what must come out. `curves` runs it with a seed; `measures`
makes numbers of the curves; `runs` does that for many seeds and holds the worst against the bound; `charts`, `svg` and
`page` draw. `commands` is ``heliograph lab``. The network itself is C (``trial/``), on the simulated network of the
C tests.
"""
