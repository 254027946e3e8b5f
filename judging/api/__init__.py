"""The API of the evaluator half: the same services, access and words as the pages."""
