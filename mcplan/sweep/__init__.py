"""Experiments: the same job over many configurations, on one machine or a Dask cluster, resumed where it stopped."""
