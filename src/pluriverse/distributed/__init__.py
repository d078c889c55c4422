"""One process for each device: ranks, their launch, the check before a job, signs of life, checkpoints."""

from pluriverse.distributed import ray
from pluriverse.distributed.checkpoints import Checkpoints
from pluriverse.distributed.equality import EqualityCheck
from pluriverse.distributed.heartbeat import heartbeat
from pluriverse.distributed.launch import launch
from pluriverse.distributed.preflight import preflight
from pluriverse.distributed.rank import Rank
from pluriverse.distributed.setup import setup

__all__ = ["Checkpoints", "EqualityCheck", "Rank", "heartbeat", "launch", "preflight", "ray", "setup"]
