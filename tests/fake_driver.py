"""A CUDA driver without GPUs: it reads the mask once, at its start, as the real one does."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pluriverse.devices import MASK, Gpu, Unavailable


def machine(count: int) -> tuple[Gpu, ...]:
    """That many GPUs with uuids GPU-0000..., GPU-1111..., ..."""
    return tuple(
        Gpu(f"GPU-{str(k) * 8}-{str(k) * 4}-{str(k) * 4}-{str(k) * 4}-{str(k) * 12}", "Fake", f"0000:0{k}:00.0")
        for k in range(count)
    )


class FakeDriver:
    """A `devices.Driver` over a list of GPUs.

    Args:
        gpus: the machine's, in CUDA's order.
        environ: where the mask is read.
        contexts: indices among the visible GPUs that hold a context of this process.
        current: torch's current device, None while torch has not started CUDA.
        listed: whether `physical` knows the machine.
        mig: uuids of MIG instances in CUDA's form, GPU-..., which a mask entry MIG-... selects.
    """

    def __init__(
        self,
        gpus: tuple[Gpu, ...],
        environ: Mapping[str, str],
        contexts: tuple[int, ...] = (),
        current: int | None = None,
        listed: bool = True,
        mig: tuple[str, ...] = (),
    ) -> None:
        self.gpus, self.environ, self.contexts, self.listed = gpus, environ, contexts, listed
        self.torch_device = current
        self.mig = mig
        self.seen: tuple[Gpu, ...] | None = None

    def start(self) -> None:
        """What any first CUDA call does."""
        if self.seen is not None:
            return
        mask = self.environ.get(MASK)
        if mask is None:
            self.seen = self.gpus
            return
        chosen: list[Gpu] = []
        for entry in (part.strip() for part in mask.split(",")):
            gpu = self._find(entry)
            if gpu is None:
                break
            chosen.append(gpu)
        self.seen = () if len(set(chosen)) < len(chosen) else tuple(chosen)

    def _find(self, entry: str) -> Gpu | None:
        if entry.startswith("MIG-"):
            return next((Gpu(u, "Fake MIG") for u in self.mig if u[4:].startswith(entry[4:])), None)
        if entry.startswith("GPU-"):
            return next((gpu for gpu in self.gpus if gpu.uuid.startswith(entry)), None)
        number = re.fullmatch(r"\d+", entry)
        return self.gpus[int(entry)] if number and int(entry) < len(self.gpus) else None

    def started(self) -> bool:
        return self.seen is not None

    def visible(self) -> tuple[Gpu, ...]:
        self.start()
        if not self.seen:
            raise Unavailable("the CUDA driver finds no GPU")
        return tuple(Gpu(g.uuid, g.name, g.bus, k in self.contexts) for k, g in enumerate(self.seen))

    def physical(self) -> tuple[Gpu, ...] | None:
        return self.gpus if self.listed else None

    def current(self) -> int | None:
        return self.torch_device

    def use(self, index: int) -> None:
        self.torch_device = index
