"""Entities, links, joints, geoms and so on: names and local indices over the solver."""

from __future__ import annotations

from pluriverse.entities.rigid_entity import RigidEntity
from pluriverse.entities.rigid_equality import RigidEquality
from pluriverse.entities.rigid_geom import RigidGeom
from pluriverse.entities.rigid_joint import RigidJoint
from pluriverse.entities.rigid_link import RigidLink
from pluriverse.entities.rigid_site import RigidSite

__all__ = ["RigidEntity", "RigidEquality", "RigidGeom", "RigidJoint", "RigidLink", "RigidSite"]
