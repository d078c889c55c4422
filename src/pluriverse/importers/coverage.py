"""What becomes of every field of a compiled MuJoCo model: used, without meaning for the dynamics, or refused.

The tables are data. A test holds them against `mujoco.MjModel`, so that a field which a later MuJoCo adds has to be
placed here before the package can claim to support that version.
"""

from __future__ import annotations

import numpy as np

from pluriverse.importers.rules import (
    Rule,
    assigned,
    collides_as_unsupported_shape,
    defined_by_callbacks,
    is_one_of,
    nonzero,
    option_flags,
    option_other_than,
    option_set,
    other_than,
)

# Fields that the dynamics uses, most of them through `Model`.
USED = """
    nq nv nu na nbody njnt ntree ngeom nmesh nmeshvert nmeshface nmeshgraph npair nexclude neq nkey
    nsite ntendon nwrap nmocap nhfield
    qpos0 qpos_spring
    body_parentid body_rootid body_weldid body_jntnum body_jntadr body_dofnum body_dofadr body_geomnum body_geomadr
    body_treeid body_pos body_quat body_ipos body_iquat body_mass body_subtreemass body_inertia body_invweight0
    body_gravcomp body_mocapid body_sameframe
    jnt_type jnt_qposadr jnt_dofadr jnt_bodyid jnt_pos jnt_axis jnt_stiffness jnt_stiffnesspoly jnt_range jnt_limited
    jnt_margin jnt_solref jnt_solimp jnt_actfrclimited jnt_actfrcrange jnt_actgravcomp
    dof_bodyid dof_jntid dof_parentid dof_treeid dof_armature dof_damping dof_dampingpoly dof_frictionloss dof_solref
    dof_solimp dof_M0 dof_invweight0
    geom_type geom_contype geom_conaffinity geom_condim geom_bodyid geom_dataid geom_priority geom_solmix geom_solref
    geom_solimp geom_size geom_rbound geom_pos geom_quat geom_friction geom_margin geom_gap
    geom_fluid hfield_size hfield_nrow hfield_ncol hfield_adr hfield_data
    site_bodyid site_type site_size site_pos site_quat
    mesh_vertadr mesh_vertnum mesh_faceadr mesh_facenum mesh_graphadr mesh_pos mesh_quat mesh_vert mesh_face mesh_graph
    mesh_polynum mesh_polyadr mesh_polynormal mesh_polyvertadr mesh_polyvertnum mesh_polyvert
    pair_geom1 pair_geom2 pair_signature pair_dim pair_friction pair_solref pair_solreffriction pair_solimp pair_margin
    pair_gap exclude_signature
    eq_type eq_objtype eq_obj1id eq_obj2id eq_active0 eq_solref eq_solimp eq_data
    tendon_adr tendon_num tendon_limited tendon_actfrclimited tendon_actfrcrange tendon_solref_lim tendon_solimp_lim
    tendon_solref_fri tendon_solimp_fri tendon_range tendon_margin tendon_stiffness tendon_stiffnesspoly tendon_damping
    tendon_dampingpoly tendon_armature tendon_frictionloss tendon_lengthspring tendon_length0 tendon_invweight0
    wrap_type wrap_objid wrap_prm
    nactuator nout actuator_trntype actuator_trnid actuator_dyntype actuator_gaintype actuator_biastype actuator_gear
    actuator_gainprm actuator_biasprm actuator_ctrllimited actuator_ctrlrange actuator_forcelimited actuator_forcerange
    actuator_dynprm actuator_actadr actuator_actnum actuator_actlimited actuator_actrange actuator_actearly
    actuator_ctrladr actuator_ctrlnum actuator_ctrlspec actuator_outadr actuator_outnum actuator_group
    actuator_cranklength actuator_acc0 actuator_length0 actuator_lengthrange
    actuator_damping actuator_dampingpoly actuator_armature actuator_delay actuator_history
    key_qpos key_qvel key_ctrl key_act key_mpos key_mquat
    opt opt.timestep opt.gravity opt.integrator opt.cone opt.solver opt.impratio opt.tolerance opt.ls_tolerance
    opt.iterations opt.ls_iterations opt.disableflags opt.enableflags
    opt.noslip_iterations opt.noslip_tolerance opt.density opt.viscosity opt.wind opt.disableactuator
    opt.ccd_iterations opt.ccd_tolerance
    stat stat.meaninertia
    """

# Fields that cannot change the motion, by the reason why.
WITHOUT_MEANING = {
    "drawing": """
        vis geom_group geom_matid geom_rgba geom_castshadow jnt_group tendon_group tendon_matid tendon_rgba tendon_width
        site_dataid site_matid site_group site_sameframe
        site_user site_rgba
        ncam cam_mode cam_bodyid cam_targetbodyid cam_pos cam_quat cam_poscom0 cam_pos0 cam_mat0 cam_projection cam_fovy
        cam_ipd cam_resolution cam_output cam_sensorsize cam_intrinsic cam_user
        nlight light_mode light_bodyid light_targetbodyid light_type light_texid light_castshadow light_bulbradius
        light_intensity light_range light_active light_pos light_dir light_poscom0 light_pos0 light_dir0
        light_attenuation light_cutoff light_softness light_exponent light_ambient light_diffuse light_specular
        nskin nskinvert nskintexvert nskinface nskinbone nskinbonevert skin_matid skin_group skin_rgba skin_inflate
        skin_vertadr skin_vertnum skin_texcoordadr skin_faceadr skin_facenum skin_boneadr skin_bonenum skin_vert
        skin_texcoord skin_face skin_bonevertadr skin_bonevertnum skin_bonebindpos skin_bonebindquat skin_bonebodyid
        skin_bonevertid skin_bonevertweight skin_pathadr
        ntex ntexdata tex_type tex_colorspace tex_height tex_width tex_nchannel tex_adr tex_data tex_pathadr
        tex_contenttypeadr
        nmat mat_texid mat_texuniform mat_texrepeat mat_emission mat_specular mat_shininess mat_reflectance
        mat_metallic mat_roughness mat_rgba
        nmeshnormal nmeshtexcoord mesh_normaladr mesh_normalnum mesh_texcoordadr mesh_texcoordnum mesh_normal
        mesh_texcoord mesh_facenormal mesh_facetexcoord
        stat.extent stat.center stat.meanmass stat.meansize
        """,
    "measuring": """
        nsensor nsensordata sensor_type sensor_datatype sensor_needstage sensor_objtype sensor_objid sensor_reftype
        sensor_refid sensor_intprm sensor_dim sensor_adr sensor_cutoff sensor_noise sensor_history sensor_historyadr
        sensor_delay sensor_interval sensor_user sensor_plugin
        opt.magnetic
        actuator_historyadr nhistory
        """,
    "names, paths and data of the author": """
        nnames nnames_map names names_map npaths paths signature
        name_bodyadr name_jntadr name_geomadr name_siteadr name_camadr name_lightadr name_flexadr name_meshadr
        name_skinadr name_hfieldadr name_texadr name_matadr name_pairadr name_excludeadr name_eqadr name_tendonadr
        name_actuatoradr name_sensoradr name_numericadr name_textadr name_tupleadr name_keyadr name_pluginadr
        mesh_pathadr hfield_pathadr
        nuser_body nuser_jnt nuser_geom nuser_site nuser_cam nuser_tendon nuser_actuator nuser_sensor nuserdata
        body_user jnt_user geom_user tendon_user actuator_user
        nnumeric nnumericdata numeric_adr numeric_size numeric_data ntext ntextdata text_adr text_size text_data
        ntuple ntupledata tuple_adr tuple_size tuple_objtype tuple_objid tuple_objprm
        """,
    "bookkeeping of MuJoCo's own algorithms": """
        nM nB nC nD nJmom nJten nJfe nbvh nbvhstatic nbvhdynamic noct nemax njmax nconmax narena nbuffer
        npolygonmax nmeshdegmax ngravcomp flg_gravcomp
        body_simple body_margin body_contype body_conaffinity body_bvhadr body_bvhnum
        bvh_depth bvh_child bvh_nodeid bvh_aabb oct_depth oct_child oct_aabb oct_coeff
        dof_Madr dof_simplenum dof_length jnt_actuatorid tendon_actuatorid
        tree_bodyadr tree_bodynum tree_dofadr tree_dofnum tendon_type tendon_treenum tendon_treeid
        geom_sameframe geom_aabb
        nmeshpoly nmeshpolyvert nmeshpolymap mesh_bvhadr mesh_bvhnum mesh_octadr mesh_octnum mesh_extrema mesh_scale
        mesh_polymapadr mesh_polymapnum mesh_polymap
        B_rownnz B_rowadr B_colind M_rownnz M_rowadr M_colind mapM2M D_rownnz D_rowadr D_diag D_colind mapM2D mapD2M
        ten_J_rownnz ten_J_rowadr ten_J_colind
        opt.jacobian
        """,
    "keyframes are offered as initial states, which have no time of their own": """
        key_time key_plastic
        """,
}


# Fields of deformable bodies, those of earlier MuJoCo versions included.
FLEX_FIELDS = """
    nflex nflexnode nflexvert nflexedge nflexelem nflexelemdata nflexstiffness nflexbending nefm0dof nefm0L nefmCvert
    nflexelemedge nflexshelldata nflextexcoord nflexevpair
    flex_contype flex_conaffinity flex_condim flex_priority flex_solmix flex_solref flex_solimp flex_friction
    flex_margin flex_gap flex_internal flex_selfcollide flex_activelayers flex_passive flex_dim flex_matid flex_group
    flex_interp flex_cellnum flex_nodeadr flex_nodenum flex_vertadr flex_vertnum flex_edgeadr flex_edgenum
    flex_elemadr flex_elemnum flex_elemdataadr flex_stiffnessadr flex_elemedgeadr flex_bendingadr flex_plasticadr
    flex_plasticmode flex_shellnum flex_shelldataadr flex_evpairadr flex_evpairnum flex_texcoordadr flex_nodebodyid
    flex_vertbodyid flex_vertcell flex_edge flex_edgeflap flex_elem flex_elemtexcoord flex_elemedge flex_elemlayer
    flex_shell flex_evpair flex_vert flex_vert0 flex_node flex_node0 flexedge_length0 flexedge_invweight0 flex_radius
    flex_size flex_stiffness flex_bending efm0_dofid efm0_L_rownnz efm0_L_rowadr efm0_L_colind efm0_L efmC_perm
    flex_damping flex_yield flex_edgestiffness flex_edgedamping flex_edgeequality flex_rigid flexedge_rigid
    flex_centered flex_flatskin flex_bvhadr flex_bvhnum flexedge_J_rownnz flexedge_J_rowadr flexedge_J_colind
    flex_rgba flex_texcoord
    flex_vertedge flex_vertedgeadr flex_vertedgenum flex_vertmetric flexvert_J_colind flexvert_J_rowadr
    flexvert_J_rownnz nJfv
    """

RULES = (
    # actuators
    Rule(
        "actuator_trntype",
        "actuator",
        "drives the contacts of a body (adhesion)",
        is_one_of("actuator_trntype", "mjtTrn", "mjTRN_BODY"),
    ),
    Rule(
        "actuator_dyntype actuator_gaintype actuator_biastype",
        "actuator",
        "is defined by callbacks (type user)",
        defined_by_callbacks,
    ),
    Rule("actuator_plugin", "actuator", "is a plugin", assigned("actuator_plugin")),
    # joints
    Rule("jnt_springyield jnt_plasticadr nplastic", "joint", "has a spring that yields", nonzero("jnt_springyield")),
    # bodies
    Rule(
        "body_plugin nplugin npluginattr npluginstate plugin plugin_attr plugin_attradr plugin_stateadr "
        "plugin_statenum",
        "body",
        "uses a plugin",
        assigned("body_plugin"),
    ),
    # geoms and contacts
    Rule("geom_plugin", "geom", "uses a plugin", assigned("geom_plugin")),
    Rule(
        "geom_type nhfield nhfielddata hfield_size hfield_nrow hfield_ncol hfield_adr hfield_data",
        "geom",
        "collides as a height field or a signed distance field",
        collides_as_unsupported_shape,
    ),
    Rule("geom_surfacevel flg_surfacevel", "geom", "has a surface velocity", nonzero("geom_surfacevel")),
    Rule("geom_adhesion flg_adhesion", "geom", "has adhesion", nonzero("geom_adhesion")),
    Rule("pair_adhesion", "pair", "has adhesion", nonzero("pair_adhesion")),
    # other elements
    Rule(
        "eq_type",
        "equality",
        "is not of type connect, weld, joint or tendon (flex ...)",
        other_than("eq_type", "mjtEq", "mjEQ_CONNECT mjEQ_WELD mjEQ_JOINT mjEQ_TENDON"),
    ),
    Rule("tendon_springyield tendon_plasticadr", "tendon", "has a spring that yields", nonzero("tendon_springyield")),
    Rule(FLEX_FIELDS, "flex", "is deformable", lambda m: np.ones(m.nflex, dtype=bool)),
    # options
    Rule(
        "opt.integrator",
        "",
        "supported are Euler, RK4, implicit and implicitfast",
        option_other_than("integrator", "mjtIntegrator", "mjINT_EULER mjINT_RK4 mjINT_IMPLICIT mjINT_IMPLICITFAST"),
    ),
    Rule("opt.solver", "", "supported is Newton", option_other_than("solver", "mjtSolver", "mjSOL_NEWTON")),
    Rule("opt.noslip_iterations opt.noslip_tolerance", "", "supported is 0", option_set("noslip_iterations")),
    Rule(
        "opt.enableflags opt.o_margin opt.o_solref opt.o_solimp opt.o_friction opt.sleep_tolerance tree_sleep_policy "
        "opt.sdf_initpoints opt.sdf_iterations",
        "",
        "these flags cannot be enabled",
        option_flags(
            "enableflags",
            "mjtEnableBit",
            "mjENBL_OVERRIDE mjENBL_SLEEP mjENBL_DIAGEXACT mjENBL_IPC mjENBL_SPECULATIVE",
        ),
    ),
)


def fields_without_meaning() -> frozenset[str]:
    """The fields that cannot change the motion."""
    return frozenset(field for names in WITHOUT_MEANING.values() for field in names.split())


def covered_fields() -> frozenset[str]:
    """All fields that have a place here; those of options and statistics with `opt.` and `stat.` before them."""
    return (
        frozenset(USED.split()) | fields_without_meaning() | {field for rule in RULES for field in rule.fields.split()}
    )
