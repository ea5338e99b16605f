"""A snapshot as bytes, and back: frames, whole or as changes, that describe themselves (engine/docs/snapshot.md).

`Encoder().frame(snapshot)` makes one frame; `Decoder().feed(frame)` gives the snapshot back, its histograms bit by bit
the same. A reader may come late (it waits for a keyframe), lose frames (it names them) and be of another version.
"""

from __future__ import annotations

from heliograph.monitor.packing.decoder import Decoder, DecoderStats
from heliograph.monitor.packing.encoder import Encoder
from heliograph.monitor.packing.frame import Limits, PackingError
from heliograph.monitor.packing.sparse import SparseHistogram

__all__ = ["Decoder", "DecoderStats", "Encoder", "Limits", "PackingError", "SparseHistogram"]
