"""Results of runs: figures, their tables, and audits of explanations."""
