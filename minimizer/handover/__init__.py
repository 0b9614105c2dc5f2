"""What is handed to a person: the repro script, its plain form, the report."""
