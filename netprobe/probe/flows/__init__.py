"""The flows of one destination: what is sent, and what came back."""
