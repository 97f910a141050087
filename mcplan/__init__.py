"""mcplan: multi-contact motion planning, whole-body control and simulation for humanoids."""

__version__ = "0.1.0"
