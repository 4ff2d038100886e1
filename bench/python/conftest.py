"""Puts this folder, and with it `pe_zoo`, on the import path of the tests."""
