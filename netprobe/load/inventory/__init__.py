"""Inventories: YAML and Ansible files to hosts."""
