"""Dense programs, polytopes, and CVXPY problems compiled; nothing here knows a robot."""
