"""Data in blocks of rows on Dask, where X and sample space stay; and targets and labels as users give them."""
