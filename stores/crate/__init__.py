"""CrateDB: chunks as rows of SQL tables that other programs can query too."""
