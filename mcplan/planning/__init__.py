"""Planning: postures, stance search, motions between stances, timing."""
