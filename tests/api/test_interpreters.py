"""Sub-interpreters and free threading: the engine runs in the main interpreter, under the GIL."""

from __future__ import annotations

import importlib
import sys

import pytest

from .conftest import Script

IN_A_SUB_INTERPRETER = """
import sys
try:
    import _interpreters as interpreters  # from Python 3.13
except ImportError:
    import _xxsubinterpreters as interpreters
if sys.argv[1] == "after":
    from heliograph.engine import Instance
text = '''
import heliograph.engine, heliograph.engine.catalogue
try:
    heliograph.engine.Instance
except ImportError as error:
    print(error, flush=True)
else:
    print("imported", flush=True)
'''
for _ in range(2):
    other = interpreters.create()
    result = interpreters.run_string(other, text)
    assert result is None, result
    interpreters.destroy(other)
from heliograph.engine import Instance
with Instance(stats="memory") as instance, instance.receiver(sys.argv[2], "T") as receiver:
    instance.transmitter(sys.argv[2], "T", linger=0.0).send(b"x")
    print(receiver.receive(timeout=5)[0].data, flush=True)
"""


def has_sub_interpreters() -> bool:
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        return True
    return False


@pytest.mark.skipif(not has_sub_interpreters(), reason="this Python has no module to make sub-interpreters with")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_sub_interpreter_is_refused_and_the_main_one_works_on(script: Script, multicast: str, when: str) -> None:
    """Whether the main interpreter has imported the engine before or not."""
    process = script(IN_A_SUB_INTERPRETER, when, multicast)
    output, errors = process.communicate(timeout=30)
    refused = "heliograph's engine runs in the main interpreter only, and this is a sub-interpreter"
    assert (process.returncode, output.splitlines(), errors) == (0, [refused, refused, "b'x'"], "")


def test_the_engine_may_be_imported_again(script: Script, multicast: str) -> None:
    process = script(
        "import sys, importlib\n"
        "import heliograph.engine._core as first\n"
        "del sys.modules['heliograph.engine._core']\n"
        "second = importlib.import_module('heliograph.engine._core')\n"
        "assert second is not first and second.Receiver is first.Receiver\n"
        "from heliograph.engine import Instance\n"
        "with Instance(stats='memory') as instance, instance.receiver(sys.argv[1], 'T') as receiver:\n"
        "    instance.transmitter(sys.argv[1], 'T', linger=0.0).send(b'x')\n"
        "    assert receiver.receive(timeout=5)[0].data == b'x'\n",
        multicast,
    )
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")


@pytest.mark.filterwarnings("ignore:The global interpreter lock:RuntimeWarning")
def test_the_engine_keeps_the_gil_switched_on() -> None:
    importlib.import_module("heliograph.engine._core")
    assert getattr(sys, "_is_gil_enabled", lambda: True)()
