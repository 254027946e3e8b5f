"""The API of annotation, which has the same queue, access rules and messages as the pages."""
