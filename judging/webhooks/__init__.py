"""Webhooks: other programs are told of final labels, runs and jobs by signed requests."""
