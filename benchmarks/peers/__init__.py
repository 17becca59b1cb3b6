"""The peer benchmark: groupowl against every package that solves one of its problems; run by ``make bench``."""
