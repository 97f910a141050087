"""A drawing keeps what a viewer needs, in order."""

import numpy as np
import umsgpack
from meshcat import geometry

from mcplan.view.drawing import Drawing
from tests.view.tracks import tracks_of


def test_commands_come_in_order_and_the_motion_beside_them():
    drawing = Drawing(np.arange(3) / 10)
    drawing.root["a"].set_object(geometry.Box([1, 1, 1]))
    drawing.animate("a", position=np.zeros((3, 3)))
    drawing.root["b"].set_object(geometry.Sphere(0.1))
    kinds = [umsgpack.unpackb(command)["type"] for command in drawing.commands()]
    assert kinds == ["set_object", "set_object"]
    assert drawing.paths == ["a", "b"]
    assert [item["path"] for item in drawing.tracks()] == ["a"]


def test_an_animation_plays_the_frames_it_was_given_at_their_times():
    positions = np.array([[0.0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 2], [0, 0, 2], [0, 0, 2]])
    drawing = Drawing(np.arange(7) / 10)
    drawing.animate("a", position=positions)
    times, values = tracks_of(drawing.tracks())["a"][".position"]
    assert len(times) < len(positions)  # frames without change are left out ...
    played = np.column_stack([np.interp(np.arange(7) / 10, times, values[:, axis]) for axis in range(3)])
    assert np.allclose(played, positions, atol=1e-6)  # ... and interpolation brings them back, in single precision


def test_a_frame_is_returned_and_not_kept():
    drawing = Drawing()
    drawing.root["a"].set_object(geometry.Box([1, 1, 1]))
    before = drawing.commands()
    sent = drawing.frame(lambda: drawing.root["a"].set_transform(np.eye(4)))
    assert [umsgpack.unpackb(command)["type"] for command in sent] == ["set_transform"]
    assert drawing.commands() == before
