"""What runs inside a measured process. Needs only the standard library and the client under test.

Each module here is a program. It takes the flags of ``protocol``, measures once, prints one line of JSON and ends.
"""
