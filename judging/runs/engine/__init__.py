"""Asking: workers look for due work, lease requests, ask, and store what came of them."""
