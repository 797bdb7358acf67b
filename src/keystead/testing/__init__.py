"""Test kit for programs built on Keystead. With pytest installed its fixtures are there by themselves.

==================  =================================================================================
``plugin``          the fixtures: valkey_server, valkey, valkey_cluster, cluster, fault_proxy,
                    moving_clock, no_undeclared_keys, no_cross_slot
``server``          ``LocalServer``: a Valkey of its own in a temporary directory
``cluster``         ``LocalCluster``: three primaries and three replicas on loopback
``proxy``           ``FaultProxy``: stands before a server and cuts, delays, drops, throttles
``clock``           ``MovableClock``: time that tests move, and the remaining TTLs with it
``checks``          nothing undeclared left behind; no call across slots
==================  =================================================================================

Import from the modules: pytest loads this package in every project that has Keystead installed, so it imports nothing.
"""

__all__: list[str] = []
