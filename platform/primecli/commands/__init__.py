"""One file per noun of the product; each command parses, calls the API, and shows the reply."""
