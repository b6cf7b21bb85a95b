"""Migrations of the schema, for Alembic."""
