"""The Ray that a study runs on. All use of Ray's private API is here."""
