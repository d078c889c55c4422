"""Compiling and launching printed kernels with Warp, on CUDA or on the CPU's cores."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pluriverse.errors import GenesisException
from pluriverse.logging import logger

from .source import Source, Target, unwritable, write_atomically

# Threads of a CUDA block: larger blocks lose at a few thousand environments, where they leave multiprocessors idle.
BLOCK = 32

TEMPLATE = '''"""Generated: the entry of kernel {name}."""

import warp as wp

CALL = """
#if defined(__CUDA_ARCH__) || !defined(__CUDACC__)
{name}::run({arguments});
#endif
"""


@wp.func_native(CALL)
def run({parameters}, thread: wp.int32): ...


@wp.kernel(enable_backward=False, grid_stride=False, launch_bounds={block}, module="unique", module_options=OPTIONS)
def {name}({parameters}):
    run({names}, wp.tid())
'''


class Kernel:
    """A compiled kernel on one device. `bind` fixes its arguments; what it returns launches it."""

    def __init__(self, source: Source, target: Target, device: str, cache: Path) -> None:
        self.source, self.target, self.device = source, target, device
        with _only_one_process(cache / f"{source.name}.lock"):
            self._kernel = _declare(source, target, cache)
            _compile(self._kernel, device, BLOCK if target.cuda else 1)

    def bind(self, arrays: dict[str, Any], n_envs: int, stride: int, n_threads: int = 1) -> Launcher:
        """Fixes the arrays and the number of environments.

        arrays: torch tensors, (rows, stride) on the device; alarms in host memory, pinned where the device is a GPU.
        """
        return Launcher(self, arrays, n_envs, stride, n_threads)


class Launcher:
    """A kernel bound to its arrays; `launch(*counts)` runs it, on the CPU one shard of environments per core."""

    def __init__(self, kernel: Kernel, arrays: dict[str, Any], n_envs: int, stride: int, n_threads: int) -> None:
        import torch
        import warp as wp

        source, target = kernel.source, kernel.target
        missing = {*source.buffers, *source.flags, *source.alarms} - arrays.keys()
        if missing:
            raise KeyError(f"kernel {source.name} needs arrays {sorted(missing)}")
        self._keep = [wp.from_torch(arrays[name].view(-1)) for name in (*source.buffers, *source.flags)]
        self._alarms = [arrays[name] for name in source.alarms]
        fixed = [*self._keep, *(alarm.data_ptr() for alarm in self._alarms)]
        vectors = -(-n_envs // source.envs_per_thread)
        shards = 1 if target.cuda else max(1, min(n_threads, vectors))
        # On CUDA every environment has its column, on the CPU every shard a block that its vectors take in turn.
        shape = (source.workspace, stride) if target.cuda else (shards, source.workspace * target.width)
        self._workspace = torch.empty(shape, dtype=arrays[source.buffers[0]].dtype, device=kernel.device)
        self._launches = []
        for shard in range(shards):
            first, last = (vectors * shard // shards, vectors * (shard + 1) // shards)
            threads = (last - first) * (source.lanes if target.cuda else 1)
            command = wp.launch(
                kernel._kernel,
                dim=-(-threads // BLOCK) * BLOCK if target.cuda else threads,
                inputs=[
                    *fixed,
                    self._workspace[0 if target.cuda else shard :].data_ptr(),
                    *([1] * len(source.counts)),
                    stride,
                    first * source.envs_per_thread,
                    n_envs,
                ],
                device=kernel.device,
                block_dim=BLOCK if target.cuda else 1,
                record_cmd=True,
            )
            self._launches.append(command)
        self._count_position = len(fixed) + 1
        self._counts: tuple[int, ...] = (1,) * len(source.counts)
        self._cuda = target.cuda
        self._pool = ThreadPoolExecutor(shards - 1) if shards > 1 else None
        self._process = os.getpid()
        self._streams: dict[int, Any] = {}

    def launch(self, *counts: int) -> None:
        """Runs the kernel: asynchronously on torch's current CUDA stream; on the CPU to its end.

        Raises GenesisException on CUDA in a process that was forked since the arrays were bound.
        """
        if counts != self._counts:
            for command in self._launches:
                for k, count in enumerate(counts):
                    command.set_param_at_index(self._count_position + k, count)
            self._counts = counts
        if self._cuda:
            if self._process != os.getpid():
                raise GenesisException(
                    f"This process was forked after its scene was built on {self._keep[0].device}, and CUDA does not "
                    "work in a fork. Start processes by the method 'spawn', and build the scene in each."
                )
            self._launches[0].launch(stream=self._current_stream())
        elif self._pool is None:
            self._launches[0].launch()
        else:
            if self._process != os.getpid():  # a fork has none of the threads
                self._pool, self._process = ThreadPoolExecutor(len(self._launches) - 1), os.getpid()
            others = [self._pool.submit(command.launch) for command in self._launches[1:]]
            self._launches[0].launch()
            for other in others:
                other.result()

    def _current_stream(self) -> Any:
        import torch
        import warp as wp

        # torch.cuda.current_stream takes 5 us, a third of a small kernel's time; Triton asks the same way
        handle = torch._C._cuda_getCurrentRawStream(self._keep[0].device.ordinal)
        if handle not in self._streams:
            self._streams[handle] = wp.Stream(self._keep[0].device, cuda_stream=handle)
        return self._streams[handle]


def _declare(source: Source, target: Target, cache: Path) -> Any:
    """The Warp kernel of a source. Warp reads a kernel's Python text from a file: it is written to the cache."""
    import warp as wp

    array = f"wp.array(dtype=wp.{'float64' if target.double else 'float32'})"
    parameters = [f"{b}: {array}" for b in source.buffers] + [f"{f}: wp.array(dtype=wp.int32)" for f in source.flags]
    parameters += [f"{a}: wp.uint64" for a in (*source.alarms, "workspace")]
    parameters += [f"{c}: wp.int32" for c in source.counts]
    parameters += ["stride: wp.int64", "first: wp.int64", "n_envs: wp.int32"]
    names = [p.split(":")[0] for p in parameters]
    written = {n: f"{n}.data" for n in (*source.buffers, *source.flags)} | {a: f"(int*){a}" for a in source.alarms}
    written["workspace"] = f"({'double' if target.double else 'float'}*)workspace"
    arguments = [written.get(n, n) for n in names] + ["thread"]
    text = TEMPLATE.format(
        name=source.name,
        arguments=", ".join(arguments),
        parameters=", ".join(parameters),
        names=", ".join(names),
        block=BLOCK,
    )
    path = cache / f"{source.name}.py"
    if not path.exists() or path.read_bytes() != text.encode():
        write_atomically(path, text)
    preamble = {"extra_cuda_preamble" if target.cuda else "extra_cpu_preamble": source.preamble}
    spec = importlib.util.spec_from_file_location(source.name, path)
    assert spec is not None
    module: Any = importlib.util.module_from_spec(spec)
    module.OPTIONS = {
        "fast_math": target.cuda and not target.double,
        "block_dim": BLOCK if target.cuda else 1,
        "cpu_compiler_flags": "-march=native",  # Warp's own default raises inlining limits: a fifth slower here
        "extra_build_options": wp.ModuleBuildOptions(**preamble),
    }
    sys.modules[source.name] = module  # Warp finds a kernel's globals through its module
    exec(compile(text, path, "exec"), vars(module))  # not by its loader, which would trust a .pyc file beside it
    return getattr(module, source.name)


def _compile(kernel: Any, device: str, block: int) -> None:
    """Has Warp compile a kernel, or find it compiled. What it finds and cannot load is removed and compiled once more.

    Raises GenesisException where that does not help.
    """
    import warp as wp

    def load() -> None:
        wp.load_module(kernel.module, device=device, block_dim=block)

    try:
        load()
    except Exception as error:
        folder = Path(wp.config.kernel_cache_dir, kernel.module.get_module_identifier(block))
        if not folder.exists():  # it was not found but compiled, in vain
            raise _not_compiled(kernel, device, folder, error) from error
        logger.warning(f"The compiled kernel in {folder} cannot be loaded ({error}). It is compiled again.")
        shutil.rmtree(folder, ignore_errors=True)
        try:
            load()
        except Exception as again:
            raise _not_compiled(kernel, device, folder, again) from again


def _not_compiled(kernel: Any, device: str, folder: Path, error: Exception) -> GenesisException:
    return GenesisException(
        f"Warp cannot compile or load the kernel {kernel.key} for {device}: {error}. Its place in the cache is "
        f"{folder}. Remove that folder and see that its disk has room, or set PLURIVERSE_CACHE_DIR to another "
        "directory before gs.init; if it persists, report it with this message."
    )


@contextlib.contextmanager
def _only_one_process(path: Path) -> Iterator[None]:
    """Holds a file lock, so that of several ranks that need one kernel a single one compiles it and the others wait."""
    import fcntl

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_CREAT | os.O_RDWR)
    except OSError as error:
        raise unwritable(path.parent, error) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
