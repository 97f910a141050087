"""Surfaces, bars and obstacles found in meshes agree with what the meshes were made of."""

import numpy as np
import pytest
import shapely
import trimesh
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from mcplan.errors import InputError
from mcplan.robot.description import Box
from mcplan.scene.detection import regions as region_module
from mcplan.scene.detection.detect import detect_scene
from mcplan.scene.detection.regions import convex_parts, has_room
from mcplan.scene.detection.settings import FindSettings
from mcplan.scene.detection.triangles import Triangles, winding_number
from mcplan.scene.polygon import half_planes, is_convex
from tests.scene.generated import generated

EVEN = 0.015
"""m: noise of up to 2 mm, a plane of least squares, and the corners of a rough edge."""


def of(*meshes):
    mesh = trimesh.util.concatenate(meshes)
    return Triangles.of(np.array(mesh.vertices), np.array(mesh.faces))


def box(size, at=(0, 0, 0), rpy=(0, 0, 0)):
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = Rotation.from_euler("xyz", rpy).as_matrix(), at
    return trimesh.creation.box(size, X)


def floor(size=4.0):
    return box((size, size, 0.1), (0, 0, -0.05))


def agreement(scene, found):
    """Return how many known surfaces are found, of how many; how many found are known; and both by their areas."""
    seen = [(shapely.Polygon(surface.corners[:, :2]), surface.corners) for surface in found.surfaces]

    def same(known, corners):
        return np.abs(corners[:, :2] @ known.plane[:2] + known.plane[2] - corners[:, 2]).max() < EVEN

    covered = [
        known.shape.intersection(shapely.union_all([p for p, corners in seen if same(known, corners)])).area
        for known in scene.known
    ]
    right = [
        sum(polygon.intersection(known.shape).area for known in scene.known if same(known, corners))
        for polygon, corners in seen
    ]
    areas, seen_areas = [known.shape.area for known in scene.known], [polygon.area for polygon, _ in seen]
    recalled = sum(c > 0.9 * a for c, a in zip(covered, areas, strict=True))
    precise = sum(r > 0.95 * a for r, a in zip(right, seen_areas, strict=True))
    return recalled, len(areas), precise, len(seen), sum(covered), sum(areas), sum(right), sum(seen_areas)


def check_agreement(seeds):
    rows = []
    for seed in seeds:
        scene = generated(seed)
        rows.append(agreement(scene, detect_scene(Triangles.of(scene.vertices, scene.faces))))
    recalled, known, precise, seen, covered, area, right, seen_area = np.sum(rows, axis=0)
    assert recalled >= 0.95 * known
    assert precise >= 0.95 * seen
    assert covered >= 0.95 * area
    assert right >= 0.95 * seen_area


@pytest.mark.slow
def test_surfaces_of_generated_scenes_are_found_and_no_others():
    check_agreement(range(8))


@pytest.fixture(scope="module", params=[0, 2, 8])
def exact(request):
    scene = generated(request.param)
    triangles = Triangles.of(scene.vertices, scene.faces)
    return triangles, detect_scene(triangles)


def solids(found):
    """Yield A (m,3), b (m,) of everything that stands there: inside where ``A x <= b``."""
    for surface in found.surfaces:
        yield hull(np.concatenate([surface.corners, surface.corners - surface.thickness * surface.normal]))
    for obstacle in found.obstacles:
        yield hull(corners_of(obstacle))


def corners_of(obstacle):
    shape = obstacle.shape
    local = np.array(trimesh.creation.box(shape.size).vertices) if isinstance(shape, Box) else shape.vertices
    return local @ obstacle.R.T + obstacle.p


def hull(corners):
    equations = ConvexHull(corners).equations
    return equations[:, :3], -equations[:, 3]


def test_all_of_a_mesh_is_a_surface_a_bar_or_an_obstacle(exact):
    triangles, found = exact
    normals, areas = triangles.normals_areas
    random = np.random.default_rng(0)
    which = random.choice(len(areas), 2000, p=areas / areas.sum())
    share = random.dirichlet([1, 1, 1], 2000)
    points = np.einsum("sk,skd->sd", share, triangles.corners[which])
    missed = np.ones(len(points), bool)
    for A, b in solids(found):
        missed &= np.max(points @ A.T - b, axis=1) > 0.03
    for bar in found.bars:
        along = np.clip((points - bar.ends[0]) @ bar.direction, 0, bar.length)
        missed &= np.linalg.norm(points - bar.ends[0] - along[:, None] * bar.direction, axis=1) > 1.6 * bar.radius
    # nobody comes to the underside of the floor, or into a solid
    missed &= points[:, 2] > triangles.vertices[:, 2].min() + 0.01
    outside = [
        winding_number(point + 0.02 * normals[k], triangles.corners) < 0.5
        for point, k in zip(points[missed], which[missed], strict=True)
    ]
    assert sum(outside) <= 0.01 * len(points)


def test_nothing_reaches_over_a_surface_or_into_its_slab(exact):
    _, found = exact
    for surface in found.surfaces:
        middle = surface.polygon.mean(axis=0)
        flat = np.concatenate([middle + s * (surface.polygon - middle) for s in (0.0, 0.3, 0.6, 0.9)])
        for height in (-0.5 * surface.thickness, 0.01, 0.1, 0.25):
            points = surface.p + np.column_stack([flat, np.full(len(flat), height)]) @ surface.R.T
            for obstacle in found.obstacles:
                A, b = hull(corners_of(obstacle))
                assert np.max(points @ A.T - b, axis=1).min() > -2e-3, (surface.name, obstacle.name, height)


def test_parts_of_a_region_are_convex_apart_and_within_it():
    random = np.random.default_rng(1)
    for _ in range(10):
        region = shapely.box(0, 0, 3, 2)
        for x, y, turn in random.uniform((0, 0, 0), (3, 2, 3), (4, 3)):
            hole = shapely.affinity.rotate(shapely.box(x - 0.2, y - 0.15, x + 0.2, y + 0.15), turn, use_radians=True)
            region = region.difference(hole)
        parts = convex_parts(region, (0.1, 0.2))
        shapes = [shapely.Polygon(part) for part in parts]
        assert all(is_convex(part) for part in parts)
        assert all(shape.difference(region.buffer(3e-3)).area < 1e-9 for shape in shapes)
        assert shapely.union_all(shapes).area >= sum(shape.area for shape in shapes) - 1e-3
        assert shapely.union_all(shapes).area > 0.9 * region.area


def test_room_is_that_of_a_rectangle_in_any_direction():
    for turn in (0.0, 0.4, 1.3):
        c, s = np.cos(turn), np.sin(turn)
        strip = np.array([[-0.15, -0.05], [0.15, -0.05], [0.15, 0.05], [-0.15, 0.05]]) @ np.array([[c, s], [-s, c]])
        assert has_room(strip, (0.29, 0.09))
        assert not has_room(strip, (0.29, 0.12))


@pytest.mark.parametrize("turned", [False, True])
def test_a_box_may_be_inside_out_or_in_any_order(turned):
    mesh = box((1, 0.6, 0.3), (0, 0, 0.15))
    faces = mesh.faces[:, ::-1] if turned else np.random.default_rng(0).permutation(mesh.faces)
    found = detect_scene(Triangles.of(mesh.vertices, faces))
    (surface,) = found.surfaces
    assert np.allclose(surface.normal, [0, 0, 1])
    assert np.allclose(np.sort(np.ptp(surface.polygon, axis=0)), [0.6, 1.0], atol=1e-3)
    assert surface.thickness == pytest.approx(0.3)
    assert not found.obstacles


def test_what_is_left_out_is_said_with_its_reason():
    steep = box((0.6, 0.6, 0.02), (1.4, 1.4, 0.5), (0.8, 0, 0))
    shelf = box((0.8, 0.8, 0.04), (-1, 1, 0.2))
    block = box((0.5, 0.5, 0.6), (-1, -1, 0.3))
    post = box((0.06, 0.06, 0.12), (1, -1, 0.06))
    found = detect_scene(of(floor(), steep, shelf, block, post))
    said = [str(one) for one in found.rejected]
    for reason in ("46 degrees steep", "less than 0.3 m above it", "inside a solid", "no room for 0.1 m x 0.2 m"):
        assert any(reason in text for text in said), (reason, said)
    assert {round(float(s.p[2]), 2) for s in found.surfaces} == {0.0, 0.22, 0.6}


def test_of_many_that_are_left_out_the_small_ones_share_a_line_that_has_the_area_of_all():
    sides = np.linspace(0.08, 0.12, 26)
    posts = [box((side, side, 0.1), (0.3 * k, 0, 0.05)) for k, side in enumerate(sides)]
    *each, last = detect_scene(of(*posts)).rejected
    areas = sorted(sides**2, reverse=True)
    np.testing.assert_allclose([one.area for one in each], areas[: len(each)], rtol=1e-3)
    assert last.area == pytest.approx(sum(areas[len(each) :]), rel=1e-3)
    assert last.reason == f"{each[0].reason}, and {len(sides) - len(each) - 1} more"


def test_thresholds_decide():
    slope, table = box((1, 1, 0.05), (0, 0, 0.5), (0.45, 0, 0)), box((0.3, 0.15, 0.02), (2, 0, 0.4))
    assert len(detect_scene(of(slope, table)).surfaces) == 2
    assert len(detect_scene(of(slope, table), FindSettings(slope=0.4)).surfaces) == 1
    assert len(detect_scene(of(slope, table), FindSettings(room=(0.2, 0.2))).surfaces) == 1
    low = detect_scene(of(floor(), box((3, 3, 0.02), (0, 0, 0.2))), FindSettings(clearance=0.15))
    assert sum(s.p[2] < 0.01 for s in low.surfaces) > 0
    grounded = detect_scene(of(table), FindSettings(ground=True))
    assert {s.name.split("_")[0] for s in grounded.surfaces} == {"floor", "level1"}


def test_steps_of_five_millimetres_stay_apart_and_cracks_close():
    plate = box((0.5, 0.5, 0.005), (0, 0, 0.0025))
    heights = {round(float(s.p[2]), 4) for s in detect_scene(of(floor(), plate)).surfaces}
    assert heights == {0.0, 0.005}
    left, right = box((1, 1, 0.1), (-0.504, 0, 0)), box((1, 1, 0.1), (0.504, 0, 0))
    assert len(detect_scene(of(left, right)).surfaces) == 1


def test_round_and_thin_parts_are_bars():
    rail = trimesh.creation.cylinder(
        0.02, 1.5, sections=16, transform=trimesh.transformations.rotation_matrix(1.2, [0, 1, 0])
    )
    rail.apply_translation([0, 0, 1])
    beam = box((0.04, 1.2, 0.04), (1, 0, 0.8), (0, 0, 0.3))
    board = box((0.2, 1.2, 0.03), (2, 0, 0.8))
    ball = trimesh.creation.icosphere(1, 0.03)
    found = detect_scene(of(rail, beam, board, ball))
    assert sorted(round(bar.radius, 3) for bar in found.bars) == pytest.approx([0.02, 0.025], abs=2e-3)
    assert sorted(round(bar.length, 2) for bar in found.bars) == [1.2, 1.5]
    assert len(found.surfaces) == 1


@pytest.mark.parametrize("sections", [6, 32])
@pytest.mark.parametrize(("radius", "length"), [(0.036, 0.5), (0.02, 0.25), (0.02, 1.5)])
def test_a_bar_has_the_perimeter_of_its_section_however_short_it_is(radius, length, sections):
    """Its end caps do not count: a regular polygon with n corners on a circle of radius r has 2 n r sin(pi / n)."""
    rod = trimesh.creation.cylinder(radius, length, sections=sections)
    rod.apply_transform(trimesh.transformations.rotation_matrix(0.8, [0.3, 1.0, 0.2]))
    (bar,) = detect_scene(of(rod)).bars
    assert 2 * np.pi * bar.radius == pytest.approx(2 * sections * radius * np.sin(np.pi / sections), abs=4e-4)
    assert bar.length == pytest.approx(length, abs=1e-4)


def test_a_table_is_a_top_and_its_legs():
    top = box((0.8, 0.6, 0.04), (0, 0, 0.72))
    legs = [box((0.1, 0.1, 0.7), (x, y, 0.35)) for x in (-0.3, 0.3) for y in (-0.2, 0.2)]
    found = detect_scene(of(floor(), top, *legs))
    table = max(found.surfaces, key=lambda s: s.p[2])
    assert table.thickness == pytest.approx(0.04)
    boxes = [o for o in found.obstacles if isinstance(o.shape, Box) and o.shape.size[2] > 0.5]
    assert len(boxes) == 4


def test_the_same_file_gives_the_same_scene():
    scene = generated(3)
    one, two = (detect_scene(Triangles.of(scene.vertices, scene.faces)) for _ in range(2))
    assert all(np.array_equal(a.corners, b.corners) for a, b in zip(one.surfaces, two.surfaces, strict=True))
    assert all(np.array_equal(corners_of(a), corners_of(b)) for a, b in zip(one.obstacles, two.obstacles, strict=True))


@pytest.mark.parametrize(
    ("vertices", "faces", "said"),
    [
        ([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 2]], "no triangles that have an area"),
        ([[0, 0, 0], [1, 0, 0], [np.nan, 1, 0]], [[0, 1, 2]], "not finite"),
        (np.zeros((3, 3)), np.zeros((500_001, 3)), "at most 500000"),
    ],
)
def test_what_is_no_mesh_is_refused(vertices, faces, said):
    with pytest.raises(InputError, match=said):
        Triangles.of(np.array(vertices, float), np.array(faces, int))


def test_without_its_library_the_line_to_install_it_is_said(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "shapely", None)
    with pytest.raises(InputError, match=r"pip install 'mcplan\[scenes\]'"):
        region_module.import_shapely()


def test_half_planes_of_every_outline_are_sound(exact):
    for surface in exact[1].surfaces:
        A, b = half_planes(surface.polygon)
        assert np.isfinite(A).all()
        assert np.isfinite(b).all()
