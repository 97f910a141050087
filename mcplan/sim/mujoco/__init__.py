"""Physics ``mujoco``: robot and scene as a MuJoCo model, driven by torques; state and contact forces are read back."""
