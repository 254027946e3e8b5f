"""The API of the human half: the same queue, the same access and the same words as the pages."""
