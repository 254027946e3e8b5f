"""What comes out of runs: figures, tables of them, explanations for people to judge."""
