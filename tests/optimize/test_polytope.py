import numpy as np
import pytest

from mcplan.optimize.polytope import ball_polytope, friction_pyramid


@pytest.mark.parametrize("faces", [4, 8, 16])
def test_inscribed_pyramid_lies_in_the_cone_and_touches_it(faces):
    D = friction_pyramid(faces)
    angle = np.linspace(0, 2 * np.pi, 5 * faces * 8 + 1)
    direction = np.column_stack([np.cos(angle), np.sin(angle)])
    reach = 1 / np.max(direction @ D.T, axis=1)  # the farthest point of the pyramid's section at mu f_n = 1
    assert np.max(reach) == pytest.approx(1.0, abs=1e-12)
    assert np.min(reach) == pytest.approx(np.cos(np.pi / faces), abs=1e-12)


def test_faces_of_a_pyramid_stand_in_opposite_pairs_so_their_number_is_even():
    for faces in (4, 6, 8):
        D = friction_pyramid(faces)
        np.testing.assert_allclose(D[: faces // 2], -D[faces // 2 :], atol=1e-12)
    for faces in (2, 3, 5, 7):
        with pytest.raises(ValueError, match=f"even number of faces, 4 or more, not {faces}"):
            friction_pyramid(faces)


def test_circumscribed_four_faces_bound_each_component():
    D = friction_pyramid(4, "circumscribed")
    assert {tuple(row) for row in D} == {(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)}


def test_ball_polytope_lies_in_the_ball_and_touches_it():
    D = ball_polytope(3)
    rng = np.random.default_rng(3)
    direction = rng.normal(size=(200_000, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    reach = 1 / np.max(direction @ D.T, axis=1)
    assert 0.995 < np.max(reach) <= 1.0 + 1e-12
    assert np.min(reach) > 0.88
    np.testing.assert_allclose(D[:13], -D[13:])
