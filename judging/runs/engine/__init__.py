"""The run engine: workers find due work, lease requests, call evaluators, and store the results."""
