"""The values that flow between the rooms. No I/O here."""
