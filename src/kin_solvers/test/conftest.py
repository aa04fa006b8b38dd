import sys
from pathlib import Path

# The test folder holds what answers are compared with: reference lists and brute force.
sys.path.insert(0, str(Path(__file__).parent))
