"""Static equilibrium: contact forces, balance, support regions, wrench sets."""
