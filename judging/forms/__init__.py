"""What people enter, checked before a service sees it."""
