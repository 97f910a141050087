"""Physics ``contact``: built-in rigid-body dynamics with contacts, driven by joint torques."""
