"""Which contacts to make: best-first search over stances, its moves, its record, and what tidies its result."""
