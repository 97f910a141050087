"""From stances to a plan: postures by inverse kinematics, the plan and its file."""
