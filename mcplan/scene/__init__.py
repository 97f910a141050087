"""The world: surfaces, bars, obstacles, objects, contacts, and contact placement."""
