"""Readers and lists that the gates for names and sentences share."""
