"""What the goal asks: whether an item is met and how far, contacts that could meet it, the posture at its end."""
