"""What firewalls between zones forget of silent connections, and after how long."""
