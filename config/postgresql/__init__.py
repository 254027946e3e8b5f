"""PostgreSQL as Django speaks to it, with kept connections looked at less often."""
