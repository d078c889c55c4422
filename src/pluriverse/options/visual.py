"""Options of what is shown: the scene's look, the viewer, profiling output."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pluriverse.options.base import Options, renamed

Vector = tuple[float, float, float]


class VisOptions(Options):
    """How the scene looks to cameras and in the viewer. No effect on the physics."""

    show_world_frame: bool = False
    world_frame_size: float = 1.0
    show_link_frame: bool = False
    link_frame_size: float = 0.2
    show_cameras: bool = False
    shadow: bool = True
    plane_reflection: bool = False
    split_envs: bool = False
    """Each environment is rendered alone, without its neighbours."""
    background_color: Vector = (0.04, 0.08, 0.12)
    ambient_light: Vector = (0.1, 0.1, 0.1)
    visualize_mpm_boundary: bool = False
    visualize_sph_boundary: bool = False
    visualize_pbd_boundary: bool = False
    segmentation_level: Literal["link", "entity", "geom"] = "link"
    render_particle_as: Literal["sphere", "tet"] = "sphere"
    particle_size_scale: float = 1.0
    contact_force_scale: float = 0.01
    """Length of a force arrow [m/N]."""
    n_support_neighbors: int = 12
    rendered_envs_idx: tuple[int, ...] | None = None
    """Environments that are shown; None: all."""
    lights: tuple[Any, ...] = (
        {"type": "directional", "dir": (-1, -1, -1), "color": (1.0, 1.0, 1.0), "intensity": 5.0},
    )

    deprecated: ClassVar = {"env_separate_rigid": renamed("split_envs")}


class ViewerOptions(Options):
    """The interactive viewer."""

    res: tuple[int, int] | None = None
    """Width and height [pixel]."""
    run_in_thread: bool | None = None
    refresh_rate: int = 60
    """Frames per second."""
    max_FPS: int | None = None
    realtime_factor: float | None = 1.0
    camera_pos: Vector = (3.5, 0.5, 2.5)
    camera_lookat: Vector = (0.0, 0.0, 0.5)
    camera_up: Vector = (0.0, 0.0, 1.0)
    camera_fov: float = 40.0
    """Vertical opening angle [degree]."""
    enable_help_text: bool = True
    enable_default_keybinds: bool = True
    enable_gui: bool = False


class ProfilingOptions(Options):
    """What is measured and printed while stepping."""

    show_FPS: bool = True
    """Print the speed regularly."""
    FPS_tracker_alpha: float = 0.95
    """Smoothing of the printed speed, between 0 and 1."""
