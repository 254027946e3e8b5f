"""What a run can be made of, before there is one: chosen, tried, allowed, pinned."""
