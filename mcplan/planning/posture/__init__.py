"""Whether a stance can be held: the posture generator, inverse kinematics, and the way from posture to posture."""
