import sys
from pathlib import Path

# The test folder holds a node of its own.
sys.path.insert(0, str(Path(__file__).parent))
