"""The four protocols by name."""

from __future__ import annotations

from wire.chat import Chat
from wire.generate_content import GenerateContent
from wire.messages import Messages
from wire.protocol import Protocol
from wire.responses import Responses

PROTOCOLS: dict[str, Protocol] = {
    p.name: p for p in (Chat(), Responses(), Messages(), GenerateContent())
}
