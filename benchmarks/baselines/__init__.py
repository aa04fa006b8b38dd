"""What the benchmarks measure against: ports of the papers, models, campaigns; for tests too."""
