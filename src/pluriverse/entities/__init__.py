"""Entities, links, joints and geoms: names and local indices over the solver."""

from __future__ import annotations

from pluriverse.entities.rigid_entity import RigidEntity
from pluriverse.entities.rigid_geom import RigidGeom
from pluriverse.entities.rigid_joint import RigidJoint
from pluriverse.entities.rigid_link import RigidLink

__all__ = ["RigidEntity", "RigidGeom", "RigidJoint", "RigidLink"]
