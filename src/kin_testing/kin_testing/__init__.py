"""What the kinstack tests share. No node and no library imports this package."""
