"""Where to go: goals, and a way of the base towards them that keeps clear of everything and near supports."""
