"""PNG, GIF and MP4 of a replay, rendered by a browser or, without one, by a software rasterizer."""
