"""Enrichment: what users do, with the country that a table of the database has for them."""
