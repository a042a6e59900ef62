"""The agent's life: its loop, its output, its pace, and its end."""
