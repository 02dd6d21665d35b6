"""From the log to the tables, on Spark: decode, fold, apply, cycle; and the first copy."""
