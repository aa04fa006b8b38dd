import sys
from pathlib import Path

# The test folder holds helpers of its own (the CuPy stand-in, the oracles); the baselines are those
# of the benchmarks.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[3])]
