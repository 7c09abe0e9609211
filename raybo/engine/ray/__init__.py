"""The Ray that a study runs on. All use of Ray's private API is here: tests/engine/test_private_api.py."""
