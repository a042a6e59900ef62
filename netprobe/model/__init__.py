"""The nouns of netprobe: frozen values and their JSON codec, no input or output."""
