"""Detection of surfaces, bars and obstacles in triangle meshes and world files (URDF, SDF, MJCF)."""
