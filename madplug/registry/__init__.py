"""What is installed: plugins, local files, and the components of a Python session."""
