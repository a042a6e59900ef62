"""The follow-up checks of one destination."""
