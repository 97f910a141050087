"""Record of a run: samples, metadata, file format, and the plan rebuilt from it."""
