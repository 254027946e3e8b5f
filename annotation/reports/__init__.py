"""Reports for leads: progress and pace, category board, generation board, agreement."""
