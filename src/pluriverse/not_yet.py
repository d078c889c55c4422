"""Methods of Genesis's API that are not written yet: calling one says so. A name that gets written leaves the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from pluriverse.errors import GenesisException

NAMES = {
    "Scene": """
        add_camera add_sensor read_sensors add_light add_mesh_light add_stage add_emitter add_force_field add_recorder
        start_recording stop_recording export load load_trajectory backward
        draw_debug_line draw_debug_lines draw_debug_arrow draw_debug_frame draw_debug_frames draw_debug_mesh
        draw_debug_sphere draw_debug_spheres draw_debug_box draw_debug_points draw_debug_frustum draw_debug_trajectory
        draw_debug_path clear_debug_object clear_debug_objects update_debug_objects render_all_cameras link_entities
        register_pre_step_callback""",
    "RigidEntity": """
        inverse_kinematics inverse_kinematics_multilink forward_kinematics plan_path get_jacobian attach
        get_contacts detect_collision get_links_net_contact_force get_dofs_force get_links_acc get_links_acc_ang
        get_mass_mat get_kinetic_energy get_potential_energy get_total_energy get_links_COM get_links_inertia
        get_links_invweight get_links_inertial_mass get_AABB get_vAABB get_verts set_vverts get_vverts read_sensors
        set_dofs_limit set_dofs_stiffness set_dofs_armature set_dofs_damping set_dofs_frictionloss set_dofs_invweight
        set_mass set_mass_shift set_COM_shift set_links_mass set_links_COM set_links_inertia set_links_inertial_mass
        set_friction_torsional set_friction_rolling apply_links_external_wrench apply_links_external_force
        apply_links_external_torque set_propellers_rpm""",
    "RigidLink": """
        get_AABB get_vAABB get_verts set_mass set_COM set_inertia set_friction_torsional set_friction_rolling
        apply_external_force apply_external_torque apply_external_wrench""",
    "RigidSolver": """
        get_links_acc get_links_acc_ang get_links_COM get_links_inertia get_links_invweight get_links_net_contact_force
        get_dofs_force get_dofs_actuator_force get_mass_mat get_jacobian get_AABB set_dofs_limit set_dofs_stiffness
        set_dofs_armature set_dofs_damping set_dofs_frictionloss set_links_mass set_links_COM set_links_inertia
        set_links_mass_shift set_links_COM_shift apply_links_external_force apply_links_external_torque
        apply_links_external_wrench add_weld_constraint delete_weld_constraint get_weld_constraints
        get_equality_constraints add_screw_constraint delete_screw_constraint get_sol_params set_sol_params
        set_global_sol_params detect_collision update_verts_for_geoms get_terrain_height""",
}

Class = TypeVar("Class")


def refuse_names_not_written(cls: type[Class]) -> type[Class]:
    """Gives a class the methods that the table lists for it."""
    for name in NAMES[cls.__name__].split():
        if hasattr(cls, name):
            raise AssertionError(f"{cls.__name__}.{name} is written: take it from the table in {__name__}")
        setattr(cls, name, _refusing(f"{cls.__name__}.{name}"))
    return cls


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        """Not supported yet."""
        raise GenesisException(f"{name} is not supported yet. README.md says what is; remove the call.")

    return refuse
