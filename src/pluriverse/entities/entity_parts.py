"""The parts of an entity, found in the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pluriverse.entities.rigid_equality import RigidEquality
from pluriverse.entities.rigid_geom import RigidGeom
from pluriverse.entities.rigid_joint import RigidJoint
from pluriverse.entities.rigid_link import RigidLink
from pluriverse.entities.rigid_site import RigidSite
from pluriverse.model import Model

if TYPE_CHECKING:
    from pluriverse.entities.rigid_entity import RigidEntity
    from pluriverse.importers.scene_spec import EntityLayout


@dataclass(frozen=True, eq=False)
class EntityParts:
    """In the order of the model."""

    links: list[RigidLink]
    joints: list[RigidJoint]
    geoms: list[RigidGeom]
    sites: list[RigidSite]
    equalities: list[RigidEquality]

    @classmethod
    def of(cls, entity: RigidEntity, layout: EntityLayout, model: Model) -> EntityParts:
        """Makes them; a link knows its joints and geoms."""
        links = [
            RigidLink(entity, body - 1, local, name)
            for local, (body, name) in enumerate(zip(layout.bodies, layout.body_names, strict=True))
        ]

        def link_of(body: int) -> RigidLink | None:
            return links[int(body) - layout.bodies.start] if body else None

        joints = [
            RigidJoint(links[model.jnt_bodyid[idx] - layout.bodies.start], idx, local, name)
            for local, (idx, name) in enumerate(zip(layout.joints, layout.joint_names, strict=True))
        ]
        geoms = [
            RigidGeom(entity, link_of(model.geom_bodyid[idx]), idx, name)
            for idx, name in zip(layout.geoms, layout.geom_names, strict=True)
        ]
        sites = [
            RigidSite(entity, link_of(model.site_bodyid[idx]), idx, name)
            for idx, name in zip(layout.sites, layout.site_names, strict=True)
        ]
        equalities = [
            RigidEquality(entity, idx, local, name)
            for local, (idx, name) in enumerate(zip(layout.equalities, layout.equality_names, strict=True))
        ]
        for joint in joints:
            joint.link.joints.append(joint)
        for geom in geoms:
            if geom.link is not None:
                geom.link.geoms.append(geom)
        return cls(links, joints, geoms, sites, equalities)
