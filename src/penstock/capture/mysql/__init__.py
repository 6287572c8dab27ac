"""Changes of MariaDB's tables, by its binary log."""
