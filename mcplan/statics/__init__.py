"""Static equilibrium of a stance and its support region."""
