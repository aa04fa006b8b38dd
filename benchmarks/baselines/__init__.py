"""What the systems are measured against: published methods, other compilers, other libraries."""
