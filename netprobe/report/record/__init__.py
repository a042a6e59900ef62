"""Results on their way: collected, recorded, read again, compared, and without their names."""
