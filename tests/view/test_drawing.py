"""A drawing keeps what a viewer needs, in order."""

import numpy as np
import umsgpack
from meshcat import geometry

from mcplan.view.drawing import Drawing


def test_commands_come_in_order_with_the_animation_last():
    drawing = Drawing(np.arange(3) / 10)
    drawing.root["a"].set_object(geometry.Box([1, 1, 1]))
    drawing.animate("a", position=np.zeros((3, 3)))
    drawing.root["b"].set_object(geometry.Sphere(0.1))
    kinds = [umsgpack.unpackb(command)["type"] for command in drawing.commands()]
    assert kinds == ["set_object", "set_object", "set_animation"]


def test_an_animation_plays_the_frames_it_was_given_at_their_times():
    positions = np.array([[0.0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 2], [0, 0, 2], [0, 0, 2]])
    drawing = Drawing(np.arange(7) / 10)
    drawing.animate("a", position=positions)
    clip = umsgpack.unpackb(drawing.commands()[-1])["animations"][0]["clip"]
    keys = clip["tracks"][0]["keys"]
    times = np.array([key["time"] for key in keys])
    values = np.array([key["value"] for key in keys])
    assert clip["fps"] == 1  # so that times are in seconds
    assert len(keys) < len(positions)  # frames without change are left out ...
    played = np.column_stack([np.interp(np.arange(7) / 10, times, values[:, axis]) for axis in range(3)])
    assert np.allclose(played, positions, atol=1e-6)  # ... and interpolation brings them back, in single precision


def test_a_frame_is_returned_and_not_kept():
    drawing = Drawing()
    drawing.root["a"].set_object(geometry.Box([1, 1, 1]))
    before = drawing.commands()
    sent = drawing.frame(lambda: drawing.root["a"].set_transform(np.eye(4)))
    assert [umsgpack.unpackb(command)["type"] for command in sent] == ["set_transform"]
    assert drawing.commands() == before
