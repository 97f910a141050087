"""Pictures of triangles: which of them is seen at each pixel."""
