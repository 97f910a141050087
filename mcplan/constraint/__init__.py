"""What contacts forbid a robot: their Jacobians, how much of the robot they leave to move, forces and impacts."""
