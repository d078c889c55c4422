"""How messages name dofs and links: by their entity, and by the indices and names that the user knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pluriverse.model import Model
from pluriverse.solver.indexing import Rows

if TYPE_CHECKING:
    from pluriverse.importers.scene_spec import EntityLayout


class ElementNames:
    """Names over the entities of a scene. An index counts as the argument that the rows came from does."""

    def __init__(self, model: Model, layouts: Sequence[EntityLayout]) -> None:
        self._model, self._layouts = model, layouts

    def of_dofs(self, rows: Rows, chosen: np.ndarray) -> str:
        """The dofs `rows.indices[chosen]`, each once: `entity 'arm': dof 6 (joint 'shoulder'), dof 10 (...)`."""
        dofs = np.unique(rows.indices[chosen])
        texts = []
        for layout in self._layouts:
            names = layout.joint_names
            by_joint: dict[int, list[int]] = {}
            for dof in dofs[np.isin(dofs, layout.dofs)].tolist():
                shown = dof - (layout.dofs.start if _is_local(rows) else 0)
                by_joint.setdefault(int(self._model.dof_jntid[dof]) - layout.joints.start, []).append(shown)
            parts = [f"{_numbered('dof', own)} ({_named('joint', names[joint])})" for joint, own in by_joint.items()]
            if parts:
                texts.append(f"entity '{layout.label}': {', '.join(parts)}")
        return "; ".join(texts) or _numbered("dof", dofs.tolist())

    def of_links(self, rows: Rows, bodies: Sequence[int]) -> str:
        """Links by their bodies: `entity 'ground': link 0 ('plane')`."""
        texts = []
        for layout in self._layouts:
            first = layout.bodies.start if _is_local(rows) else 1
            parts = [
                f"link {body - first} ({_quoted(layout.body_names[body - layout.bodies.start])})"
                for body in bodies
                if body in layout.bodies
            ]
            if parts:
                texts.append(f"entity '{layout.label}': {', '.join(parts)}")
        return "; ".join(texts) or _numbered("link", [body - 1 for body in bodies])


def _is_local(rows: Rows) -> bool:
    return rows.argument.endswith("_local")


def _numbered(kind: str, indices: list[int]) -> str:
    return f"{kind}{'s' if len(indices) > 1 else ''} {', '.join(map(str, indices))}"


def _named(kind: str, name: str) -> str:
    return f"{kind} '{name}'" if name else f"unnamed {kind}"


def _quoted(name: str) -> str:
    return f"'{name}'" if name else "unnamed"
