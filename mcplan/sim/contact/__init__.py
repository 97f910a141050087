"""Physics ``contact``: the project's own bodies in contact, driven by torques."""
