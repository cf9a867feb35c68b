"""The child process that reads files, and the frames that it exchanges with its parent."""
