"""Environment model: surfaces, bars, obstacles, objects, contacts, and contact placement."""
