"""Which weights should be the default: sequences compared on real data and on known groups."""
