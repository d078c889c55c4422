"""The command `pluriverse`: run a script on every device, or look at what this machine offers."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pluriverse import __version__
from pluriverse.errors import GenesisException

if TYPE_CHECKING:
    from pluriverse.distributed.rank import Rank

EXAMPLES = """\
examples:
  pluriverse launch rollouts.py                        one process on each visible GPU, else one on the CPU
  pluriverse launch --devices 0,2 rollouts.py --seed 3 on two of the visible GPUs; --seed 3 is the script's
  pluriverse launch --devices cpu:4 rollouts.py        four processes that share the CPU's cores
  pluriverse doctor                                    what this machine offers, and what is wrong with it

A training whose processes exchange gradients is started with torchrun:
  torchrun --nproc_per_node=8 train.py
"""

LAUNCH = """\
Run a Python script in one process for each device. Each process sees its own device only and is told its rank by
torchrun's variables (RANK, WORLD_SIZE, ...). A process that fails ends the others; its traceback is shown and the exit
code is 1.
"""

DEVICES = """\
all: the visible GPUs, else the CPU (default). 0,2: GPUs counted as CUDA_VISIBLE_DEVICES shows them. GPU-<uuid> or
MIG-<uuid>, which may be cut short. cpu:4: four processes that share the cores.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code. `arguments` are those after the command's name, by default this process's."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        if given.command == "launch":
            return _launch(given.script, given.arguments, given.devices, given.per_device)
        if given.command == "doctor":
            from pluriverse.distributed.doctor import doctor

            return doctor()
    except GenesisException as error:
        print(f"pluriverse: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("pluriverse: interrupted; all processes have ended", file=sys.stderr)
        return 130
    parser.print_help()
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "pluriverse",
        description="Many copies of a robot world at once: on one GPU, several, or the CPU.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pluriverse {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    launch = commands.add_parser("launch", help="run a script in one process for each device", description=LAUNCH)
    launch.add_argument("--devices", default="all", metavar="LIST", help=DEVICES)
    launch.add_argument("--per-device", type=int, default=1, metavar="K", help="processes on each device (default 1)")
    launch.add_argument("script", metavar="SCRIPT.py")
    launch.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="the script's own arguments")
    commands.add_parser("doctor", help="look at this machine: devices, versions, and what is wrong")
    return parser


def _launch(script: str, arguments: Sequence[str], devices: str, per_device: int) -> int:
    from pluriverse.distributed.launch import launch

    if not os.path.isfile(script):
        raise GenesisException(
            f"launch: there is no file {script!r} in {os.getcwd()}. Give a Python script; options of launch, such as "
            "--devices, stand before it, and the script's own after it."
        )
    launch(run_script, devices, per_device=per_device, args=(script, tuple(arguments)))
    return 0


def run_script(rank: Rank, script: str, arguments: Sequence[str]) -> None:
    """Run a script in this process as `python script arguments...` would."""
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.realpath(script)))
    runpy.run_path(script, run_name="__main__")
