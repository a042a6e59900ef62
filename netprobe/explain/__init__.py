"""One flow under the microscope: every step that a run takes for it, and the evidence."""
