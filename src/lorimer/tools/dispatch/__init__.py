"""The way of a call: one file per station, in the order of `dispatcher.STATIONS`."""
