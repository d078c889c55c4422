"""C++ text of a traced program for one target, and its place in the on-disk cache."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pluriverse.errors import GenesisException

from .printer import Printer
from .program import Program

HERE = Path(__file__).parent
VECTOR_BYTES = 64  # one AVX-512 register, two AVX2 ones


@dataclass(frozen=True)
class Target:
    """What code is printed for: a CUDA device or the CPU; float or double."""

    cuda: bool
    double: bool

    @property
    def width(self) -> int:
        """Scalars in a CPU vector."""
        return VECTOR_BYTES // (8 if self.double else 4)

    @property
    def together(self) -> int:
        """Environments that share lists of records."""
        return 1 if self.cuda else self.width


@dataclass(frozen=True)
class Source:
    """A kernel as text: `preamble` holds everything. Its entry is
    `run(buffers..., flags..., alarms..., workspace, counts..., stride, first, n_envs, thread)`."""

    name: str
    preamble: str
    buffers: tuple[str, ...]
    flags: tuple[str, ...]
    alarms: tuple[str, ...]  # in host memory, which CUDA writes too: passed by address
    workspace: int  # rows of the buffer for large local arrays: of an environment on CUDA, of a vector on the CPU
    counts: tuple[str, ...]
    lanes: int
    envs_per_thread: (
        int  # environments that one thread holds (a CPU vector), 1 on CUDA, where an environment takes `lanes` threads
    )


def print_source(program: Program, target: Target, name: str) -> Source:
    """Prints a traced program for a target."""
    printer = Printer(program, vector=not target.cuda, double=target.double)
    tables, body = printer.print()
    buffers = tuple(b.name for b in program.buffers)
    flags = tuple(f.name for f in program.flags)
    alarms = tuple(f.alarm for f in program.flags)
    scalar = "double" if target.double else "float"
    lanes = program.lanes
    width = target.width if lanes == 1 else lanes
    arguments = [f"{scalar}* {b}" for b in buffers] + [f"int* {f}" for f in (*flags, *alarms)]
    arguments += [f"{scalar}* workspace"] + [f"int {c}" for c in program.counts]
    if target.cuda:
        place = f"const int lane = thread % {lanes}; (void)lane; const size_t env = first + thread / {lanes};"
        place += " if (env >= (size_t)n_envs) return;"
    else:
        place = f"const long env = first + (long)thread * {width if lanes == 1 else 1}; if (env >= n_envs) return;"
    text = "\n".join([
        f"namespace {name} {{",
        f"typedef {scalar} T;",
        f"#define T_IS_DOUBLE {int(target.double)}",
        f"#define LANE_COUNT {lanes}",
        f"#define WIDTH {width}",
        (HERE / ("prelude_cuda.h" if target.cuda else "prelude_cpu.h")).read_text(),
        tables,
        f"INLINE void run({', '.join(arguments)}, size_t stride, size_t first, int n_envs, int thread) {{",
        place,
        body,
        "}",
        "}",
    ])  # fmt: skip
    undefine = "\n".join(f"#undef {macro}" for macro in sorted(set(re.findall(r"#define (\w+)", text))))
    per_thread = 1 if target.cuda or lanes > 1 else width
    return Source(
        name,
        f"{text}\n{undefine}\n",
        buffers,
        flags,
        alarms,
        printer.workspace_rows,
        tuple(program.counts),
        lanes,
        per_thread,
    )


def cached_source(folder: Path, stem: str, key: str, target: Target, trace: Callable[[], Program]) -> Source:
    """The text of a kernel, traced and printed only when its key has not been seen before.

    `key` must name everything that the trace depends on; this package's own tracing code is added to it here.
    """
    digest = hashlib.sha256(f"{key}|{target}|{_code_digest()}".encode()).hexdigest()[:16]
    name = f"{stem}_{digest}"
    path = folder / f"{name}.json"
    try:
        stored = json.loads(path.read_text())
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}
        return Source(**fields)
    except (OSError, ValueError, TypeError, AttributeError):  # not there, or not what was written: trace again
        source = print_source(trace(), target, name)
        write_atomically(path, json.dumps(asdict(source)))
        return source


def write_atomically(path: Path, text: str) -> None:
    """Writes a file so that other processes see all of it or nothing. Raises GenesisException where it cannot."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, suffix=".tmp") as file:
            try:
                file.write(text)
                file.close()
                os.replace(file.name, path)
            except OSError:
                os.unlink(file.name)
                raise
    except OSError as error:
        raise unwritable(path.parent, error) from error


def unwritable(folder: Path, error: OSError) -> GenesisException:
    """What to raise where a folder of the cache cannot be written."""
    return GenesisException(
        f"The cache of compiled kernels cannot be written in {folder}: {error}. Make room or grant access there, or "
        "set PLURIVERSE_CACHE_DIR to another directory before gs.init."
    )


def _code_digest() -> str:
    """Of the package's sources that decide what is traced and printed."""
    package = HERE.parent
    files = [p for p in package.rglob("*") if p.suffix in (".py", ".h") and "__pycache__" not in p.parts]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()
