"""An instance that comes and goes at once: something for a monitor to tell of."""

from __future__ import annotations

import time


def main() -> None:
    """Be there for a moment."""
    from heliograph.engine import Instance

    with Instance(name="visitor"):
        time.sleep(0.5)


if __name__ == "__main__":
    main()
