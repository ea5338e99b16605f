"""The monitor's own commands, one file each; `monitor.cli` finds them through entry points."""
