"""Dynamic walking: steps of a plan in which the robot does not come to rest."""
