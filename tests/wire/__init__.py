"""Local HTTP servers that speak the wire protocols of model providers, strictly.

A server refuses a request that breaks its provider's message rules, answers from a script, and can
go wrong in every way a real one does. `tests/models/test_vendor_sdks.py` checks each with the
vendor's own SDK as client.
"""
