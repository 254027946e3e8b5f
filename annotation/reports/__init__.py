"""What leads look at: progress and pace, the category board, and how far people agree."""
