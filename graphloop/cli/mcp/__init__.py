"""List, pin and call the tools of MCP servers, and serve agents as such tools.

  graphloop mcp list https://crm.example/mcp
  graphloop mcp pin "npx -y @modelcontextprotocol/server-filesystem ." -o fs.mcp.json
  graphloop mcp call desk.py:crm find '{"name": "Ada"}'
  graphloop mcp serve desk.py --store runs.db

graphloop mcp COMMAND --help describes a command.
"""

from typing import Final

__all__ = ["COMMANDS"]

COMMANDS: Final = {
    "list": "List the tools of a server.",
    "pin": "Write the tools of a server to a file.",
    "call": "Call a tool of a server.",
    "serve": "Serve an agent as a tool.",
}
