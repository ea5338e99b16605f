"""The commands of the monitor, one file each. `monitor.cli` finds them through entry points."""
