"""What replies say: the answer in a text, its worth, and many made into one; pure."""
