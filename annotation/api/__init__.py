"""The API of annotation, with the same queue, access rules and messages as the pages."""
