"""Messages: internet mail and those of Outlook."""
