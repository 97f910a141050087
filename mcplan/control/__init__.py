"""The finite-state machine, limb trajectories and the whole-body controller."""
