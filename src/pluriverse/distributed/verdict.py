"""What the ranks' last signs of life say about a job: whose fault it is that it cannot go on. Pure rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

RUNNING, FAILED, DONE = "running", "failed", "done"


@dataclass(frozen=True)
class Sign:
    """What one rank tells of itself, several times a second."""

    rank: int
    host: str
    pid: int
    parent: int  # pid of the process that started it
    state: str  # RUNNING, FAILED or DONE
    phase: str
    beats: int  # phases entered so far
    age: float  # seconds in this phase
    limit: float  # seconds that it may take
    number: int  # of this sign
    error: str = ""  # what it failed of

    @property
    def place(self) -> str:
        return f"rank {self.rank} (pid {self.pid} on {self.host})"


@dataclass(frozen=True)
class Verdict:
    """Why the job ends, and the ranks that are to blame."""

    text: str
    culprits: tuple[int, ...]


def judge(signs: Mapping[int, Sign | None], silent: Mapping[int, float], silence: float) -> Verdict | None:
    """The reason why the job cannot go on, None while it can.

    signs: the last one of every rank, None before its first. silent: seconds since a rank's last sign, or since the
    start.
    silence: how long a rank may be silent.

    A rank that waits for another stalls too. So only the hindmost count, those that have entered the fewest phases: a
    job stalls when one of them exceeds the limit of its phase.
    """
    failed = [sign for sign in signs.values() if sign is not None and sign.state == FAILED]
    if failed:
        first = min(failed, key=lambda sign: sign.beats)
        behind = [
            f"rank {sign.rank} in '{sign.phase}', its last sign {silent[sign.rank]:.0f} s ago"
            for sign in signs.values()
            if sign is not None and sign.state == RUNNING and sign.beats < first.beats
        ]
        cause = f"; behind it, and perhaps the cause: {', '.join(behind[:8])}" if behind else ""
        return Verdict(f"{first.place} failed in phase '{first.phase}': {first.error}{cause}", (first.rank,))
    never = [rank for rank, sign in signs.items() if sign is None and silent[rank] > silence]
    if never:
        names = ", ".join(map(str, never))
        return Verdict(f"rank {names} has not begun its heartbeat within {silence:.0f} s of the others", tuple(never))
    running = [sign for sign in signs.values() if sign is not None and sign.state == RUNNING]
    lost = [sign for sign in running if silent[sign.rank] > silence]
    if lost:
        texts = [
            f"{sign.place} has given no sign for {silent[sign.rank]:.0f} s, since phase '{sign.phase}' (its phase "
            f"number {sign.beats}): it was killed or stopped, or hangs outside Python"
            for sign in lost
        ]
        return Verdict("; ".join(texts), tuple(sign.rank for sign in lost))
    if None in signs.values() or not running:
        return None
    fewest = min(sign.beats for sign in running)
    stalled = [sign for sign in running if sign.beats == fewest and sign.age > sign.limit]
    if not stalled:
        return None
    texts = [
        f"{sign.place} stalls in phase '{sign.phase}' (its phase number {sign.beats}), for {sign.age:.0f} s, "
        f"{sign.limit:g} s allowed"
        for sign in stalled
    ]
    waiting = [f"rank {s.rank} in '{s.phase}'" for s in running if s.beats > fewest]
    others = f"; meanwhile {', '.join(waiting[:8])}{', ...' if len(waiting) > 8 else ''}" if waiting else ""
    return Verdict("; ".join(texts) + others, tuple(sign.rank for sign in stalled))


def dead(signs: Mapping[int, Sign | None], pids: set[int]) -> Verdict | None:
    """Of ranks on this machine, those that ended without saying so: `pids` are gone."""
    gone = [s for s in signs.values() if s is not None and s.state == RUNNING and s.pid in pids]
    if not gone:
        return None
    texts = [
        f"{sign.place} is gone: it was killed or crashed, last seen in phase '{sign.phase}' (its phase number "
        f"{sign.beats})"
        for sign in gone
    ]
    return Verdict("; ".join(texts), tuple(sign.rank for sign in gone))
