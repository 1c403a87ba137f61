"""Bytes between processes: HTTP to engines and runners, Unix sockets, waiting between tries."""
