"""The fault harness: a private server, dqd processes, faults, and the oracle that checks the result."""
