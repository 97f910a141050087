"""The robot: URDF, robot.yaml (patches, postures, locked joints), bundled robots."""
