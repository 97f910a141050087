"""Robot model: URDF, robot.yaml (patches, postures, locked joints), bundled robots."""
