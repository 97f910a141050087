"""The MuJoCo back end: the same robot and scene handed over, torques applied, the state and the forces read back."""
