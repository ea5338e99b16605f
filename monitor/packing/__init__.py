"""Encodes snapshots as self-describing frames, complete or as changes, and decodes them (engine/docs/snapshot.md).

`Encoder().frame(snapshot)` encodes one frame; `Decoder().feed(frame)` returns the snapshot with identical histograms. A
reader may start late (it waits for a keyframe), lose frames (it counts them) and have another version.
"""

from __future__ import annotations

from heliograph.monitor.packing.decoder import Decoder, DecoderStats
from heliograph.monitor.packing.encoder import Encoder
from heliograph.monitor.packing.frame import Limits, PackingError
from heliograph.monitor.sparse import SparseHistogram

__all__ = ["Decoder", "DecoderStats", "Encoder", "Limits", "PackingError", "SparseHistogram"]
