"""Files of items that leads send by the browser or the API: looked at, checked, then imported."""
