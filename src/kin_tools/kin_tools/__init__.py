"""The command line of kinstack, its set-up, and the launch runner for machines with wheels only."""
