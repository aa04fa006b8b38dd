import sys
from pathlib import Path

# The test folder holds helpers of its own (the CuPy stand-in, the oracles).
sys.path.insert(0, str(Path(__file__).parent))
