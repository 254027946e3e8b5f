"""The documentation as pages of the site, and as a static site."""
