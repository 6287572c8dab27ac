"""An archive as it is read: its declaration, its files, and the records in them."""
