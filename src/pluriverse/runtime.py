"""The state of a session between `init` and `destroy`: device, precision, seed, live scenes, and Warp.

`runtime` is the package's one mutable global. Modules write `from pluriverse.runtime import runtime` and read
`runtime.device`, `runtime.tc_float`, `runtime.warp()` at the moment they need them.
"""

from __future__ import annotations

import atexit
import os
import random
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Protocol

import numpy as np
import torch

from pluriverse import devices
from pluriverse.cache_folder import VARIABLE, CacheFolder, cache_folder, temporary_folder
from pluriverse.constants import Backend
from pluriverse.cuda_driver import CudaDriver
from pluriverse.errors import GenesisException
from pluriverse.init_arguments import check_backend, check_eps, check_seed, known_arguments
from pluriverse.logging import configure, logger
from pluriverse.typing import DeviceLike

PRECISIONS: dict[str, tuple[torch.dtype, type[np.floating]]] = {
    "32": (torch.float32, np.float32),
    "64": (torch.float64, np.float64),
}

NO_DRIVER = b"Could not find or load the NVIDIA CUDA driver"
"""What Warp's native part prints on a machine without a GPU; in a session on the CPU it is no news."""


class Destroyable(Protocol):
    """What a session tears down at its end: a scene."""

    def destroy(self) -> None:
        """Free threads, kernels and device memory; may be called twice."""


@dataclass(frozen=True)
class Session:
    """What one `init` decided."""

    backend: Backend
    device: torch.device
    tc_float: torch.dtype
    np_float: type[np.floating]
    eps: float
    debug: bool
    seed: int | None
    process: int
    pins: dict[str, str | None]
    """The variables that pin a device, as they were at `init`."""
    cache: CacheFolder

    @property
    def forked(self) -> bool:
        """Whether this process is a fork of the one that called `init`."""
        return self.process != os.getpid()


class Runtime:
    """`init`, `destroy`, and what the rest of the package asks in between.

    Attributes:
        session: what `init` decided, None outside a session.
        generation: how many times `init` has succeeded in this process. An object made in one session compares the
            number it was born with through `require_current`.
    """

    def __init__(self, driver: Callable[[], devices.Driver] = CudaDriver) -> None:
        self.session: Session | None = None
        self.generation = 0
        self._driver = driver
        self._scenes: weakref.WeakSet[Destroyable] = weakref.WeakSet()
        self._warp_generation = 0
        self._cache_dir: Path | None = None
        self._temporary_cache: Path | None = None

    @known_arguments
    def init(
        self,
        backend: Backend | None = None,
        precision: str = "32",
        logging_level: str | int | None = None,
        debug: bool = False,
        seed: int | None = None,
        eps: float = 1e-15,
        theme: str = "dark",
        logger_verbose_time: bool = False,
        performance_mode: bool = False,
        use_deterministic_algorithms: bool | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        """Start a session: choose the device, the precision and the seed.

        Args:
            backend: `gs.cpu`, `gs.gpu` (a GPU, or with a warning the CPU) or `gs.cuda`. None takes a GPU where there
                is one, without a warning where not; with `debug` it is the CPU.
            precision: "32" or "64", the bits of every float of state and physics. Integers are int32.
            logging_level: a name or number of Python's logging; None is "info", with `debug` "debug".
            debug: log details and default to the CPU.
            seed: seeds `random`, numpy and torch on all devices, and the package's own streams; None seeds nothing.
            eps: smallest number taken as non-zero, raised to the machine epsilon of the precision.
            theme: colours of the log: "dark", "light" or "dumb".
            logger_verbose_time: log the date too.
            performance_mode: accepted for Genesis's sake, without effect: kernels are always specialised to the model.
            use_deterministic_algorithms: accepted for Genesis's sake, without effect: results are deterministic, and
                torch's own settings are left alone.
            device: "cpu", "cuda" or "cuda:k", k counting the devices that this process sees. Without it the device
                comes from QD_VISIBLE_DEVICE, torch's current device, or LOCAL_RANK; see docs/devices.md.

        torch's default dtype and device stay as they are.

        Raises:
            GenesisException: a session is running; an argument is not allowed; the backend or device is not there;
                a device variable is malformed, contradictory, out of range or was set too late.
        """
        if self.session is not None:
            raise GenesisException(self._already_initialized(self.session))
        backend = check_backend(backend)
        if str(precision) not in PRECISIONS:
            raise GenesisException(f"precision={precision!r} is not supported. Give '32' or '64'.")
        seed = check_seed(seed)
        eps = check_eps(eps)
        configure(
            logging_level if logging_level is not None else ("debug" if debug else "info"), theme, logger_verbose_time
        )

        driver = self._driver()
        choice = devices.resolve(os.environ, driver, backend, device, debug)
        if choice.device.type == "cuda":
            driver.use(choice.device.index)
        tc_float, np_float = PRECISIONS[str(precision)]
        self.session = Session(
            backend=Backend.cuda if choice.device.type == "cuda" else Backend.cpu,
            device=choice.device,
            tc_float=tc_float,
            np_float=np_float,
            eps=max(eps, float(np.finfo(np_float).eps)),
            debug=bool(debug),
            seed=seed,
            process=os.getpid(),
            pins=_pins(),
            cache=cache_folder(os.environ),
        )
        self.generation += 1
        if seed is not None:
            random.seed(seed)
            np.random.seed(seed)
            torch.manual_seed(seed)  # torch's CUDA generators too; before CUDA has started it only takes a note
        atexit.register(self.destroy)
        _announce(choice, precision)

    def destroy(self) -> None:
        """End the session: tear down its scenes, after which `init` may be called again. No-op outside a session.

        Tensors that were returned to the user stay valid.
        """
        if self.session is None:
            return
        atexit.unregister(self.destroy)
        for scene in list(self._scenes):
            try:
                scene.destroy()
            except Exception:
                logger.exception("A scene failed to close; the others are closed all the same.")
        self._scenes.clear()
        self.session = self._cache_dir = None

    def register_scene(self, scene: Destroyable) -> None:
        """Have `destroy` tear this scene down. Only a weak reference is kept."""
        self._scenes.add(scene)

    def require_initialized(self, what: str) -> Session:
        """The running session.

        Raises GenesisException outside one, and on a GPU in a forked process or where a device variable changed since
        `init`.
        """
        if self.session is None:
            raise GenesisException(f"{what} needs a session, and none is running. Call gs.init() first.")
        if self.session.backend is Backend.cuda:
            if self.session.forked:
                raise GenesisException(
                    f"{what}: this process was forked after gs.init chose {self.session.device}, and CUDA does not "
                    "work in a fork. Start processes by the method 'spawn', and call gs.init in each."
                )
            for name, before in self.session.pins.items():
                if os.environ.get(name) != before:
                    raise GenesisException(
                        f"{name} was {before!r} at gs.init and is {os.environ.get(name)!r} now; this process stays on "
                        f"{self.session.device}. Set it before gs.init, and for a child process in the child."
                    )
        return self.session

    def require_current(self, generation: int, what: str) -> Session:
        """The running session, for an object born in session number `generation`.

        Raises GenesisException if that session is over.
        """
        if self.session is None or generation != self.generation:
            raise GenesisException(f"{what}: the scene was closed by gs.destroy(). Build a new scene after gs.init().")
        return self.session

    @property
    def device(self) -> torch.device:
        """The session's device."""
        return self._running("device").device

    @property
    def backend(self) -> Backend:
        """`gs.cpu` or `gs.cuda`."""
        return self._running("backend").backend

    @property
    def tc_float(self) -> torch.dtype:
        """torch's float type of the session."""
        return self._running("tc_float").tc_float

    @property
    def np_float(self) -> type[np.floating]:
        """numpy's float type of the session."""
        return self._running("np_float").np_float

    @property
    def eps(self) -> float:
        """Smallest number taken as non-zero."""
        return self._running("EPS").eps

    @property
    def seed(self) -> int | None:
        """The seed given to `init`; random streams are keyed by it."""
        return self._running("SEED").seed

    def cache_dir(self) -> Path:
        """The directory of compiled kernels: $PLURIVERSE_CACHE_DIR, else `pluriverse` in the user's cache directory.

        It is absolute, exists, and stays the same for the session. Where it cannot be made or written, a temporary
        directory of this process takes its place, with a warning.
        """
        session = self.require_initialized("The cache of kernels")
        if self._cache_dir is None:
            fault = session.cache.fault()
            if fault is None:
                assert session.cache.path is not None
                self._cache_dir = session.cache.path
            else:
                self._temporary_cache = self._temporary_cache or temporary_folder()
                self._cache_dir = self._temporary_cache
                logger.warning(
                    f"The cache of compiled kernels cannot be written ({session.cache.named_by}): {fault}. This "
                    f"process compiles into {self._cache_dir}, which is removed at its end. Set {VARIABLE} to a "
                    "directory that you can write."
                )
        return self._cache_dir

    def warp(self) -> ModuleType:
        """Warp, initialised quietly and set to the session's device. The only place that initialises it.

        Warp's greeting asks each visible GPU for its memory, and opens a context there to do so: with the greeting
        off, Warp opens a context on a device at its first use only.
        """
        session = self._running("warp")
        import warp as wp

        if self._warp_generation != self.generation:
            if hasattr(wp.config, "log_level"):
                wp.config.log_level = wp.LOG_WARNING
            else:  # Warp's older name for it
                wp.config.quiet = True
            if wp.config.kernel_cache_dir is None and "WARP_CACHE_PATH" not in os.environ:
                wp.config.kernel_cache_dir = str(self.cache_dir() / "warp")
            quiet = _without_lines(NO_DRIVER) if session.backend is Backend.cpu else nullcontext()
            try:
                with quiet:
                    wp.init()
            except OSError as error:
                raise GenesisException(
                    f"Warp cannot start: {error}. Its cache is WARP_CACHE_PATH={os.environ.get('WARP_CACHE_PATH')!r}, "
                    f"kernel_cache_dir={wp.config.kernel_cache_dir!r}; both must be directories that you can write."
                ) from error
            if session.device.type == "cuda" and session.device.index >= wp.get_cuda_device_count():
                raise GenesisException(
                    f"Warp cannot use {session.device}: it sees {wp.get_cuda_device_count()} CUDA devices. Its CUDA "
                    "needs a newer NVIDIA driver, or Warp was initialised before the device variables were set."
                )
            wp.set_device(self.warp_device())
            self._warp_generation = self.generation
        return wp

    def warp_device(self) -> str:
        """Warp's name of the session's device: "cpu" or "cuda:k", k as in torch."""
        return str(self.device)

    def _running(self, name: str) -> Session:
        if self.session is None:
            raise GenesisException(f"gs.{name} is known in a session only. Call gs.init() first.")
        return self.session

    def _already_initialized(self, session: Session) -> str:
        changed = " and ".join(name for name, before in session.pins.items() if os.environ.get(name) != before)
        return (
            f"Genesis already initialized: a session on {session.device} is running"
            f"{' since before this process was forked' if session.forked else ''}"
            f"{f'; {changed} changed since, which has no effect on it' if changed else ''}. "
            "Call gs.destroy() before gs.init()."
        )


def _pins() -> dict[str, str | None]:
    return {name: os.environ.get(name) for name in (devices.MASK, devices.PIN)}


@contextmanager
def _without_lines(text: bytes) -> Iterator[None]:
    """Holds back what native code writes on stderr meanwhile; all of it comes out after, but lines with `text`."""
    try:
        sys.stderr.flush()
        stderr = os.dup(2)
    except (OSError, ValueError, AttributeError):  # the process has closed it
        yield
        return
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            held.seek(0)
            for line in held:
                if text not in line:
                    os.write(2, line)


def _announce(choice: devices.Choice, precision: str) -> None:
    """Log what was chosen, in one line, and what the user should know about it."""
    gpu = choice.gpu
    detail = f" ({', '.join(part for part in (gpu.name, gpu.uuid, gpu.bus) if part)})" if gpu is not None else ""
    rank = os.environ.get("RANK")
    logger.info(f"{f'Rank {rank} computes' if rank else 'Computing'} on {choice.device}{detail} in float{precision}.")
    for note in choice.notes:
        logger.info(note)
    for warning in choice.warnings:
        logger.warning(warning)


runtime = Runtime()
