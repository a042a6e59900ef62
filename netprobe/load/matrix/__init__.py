"""Matrix files and settings to matrices."""
