"""The motion from one stance to the next: found once, kept in the plan, certified, carried out, drawn."""
