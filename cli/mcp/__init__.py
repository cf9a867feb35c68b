"""`callslip mcp`: a server of the Model Context Protocol over the HTTP API."""
