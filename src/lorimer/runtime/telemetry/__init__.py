"""OpenTelemetry spans and metrics of what happens in a session. Off unless asked for.

Only `opentelemetry-api` is used: without an SDK that the program sets up, nothing is sent anywhere.
"""

from lorimer.runtime.telemetry.spans import SessionTelemetry, Telemetry

__all__ = ["SessionTelemetry", "Telemetry"]
