"""What the benchmarks are measured against: faithful ports of the papers, oracles, campaigns."""
