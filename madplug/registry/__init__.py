"""What is installed: plugins, local files, and what is told about each component."""
