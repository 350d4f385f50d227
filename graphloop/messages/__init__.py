"""Messages: the forms in which callers and files give the messages of a conversation.

Owns graphloop's own JSON form, and readers of three others: OpenAI's chat completions, the items of
OpenAI's Responses, and the AI SDK's `UIMessage` and `ModelMessage`.
Refuses a message that would lose a part on the way, and names the place of that part.
Start with `forms.py`.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door
from .forms import MessageInput, dump_messages, load_messages, messages_of

if TYPE_CHECKING:
    from .ai_sdk import is_ai_sdk, model_messages, ui_messages
    from .chat_completions import chat_message
    from .responses import input_item, is_output_item, output_items

__all__ = [
    "MessageInput",
    "chat_message",
    "dump_messages",
    "input_item",
    "is_ai_sdk",
    "is_output_item",
    "load_messages",
    "messages_of",
    "model_messages",
    "output_items",
    "ui_messages",
]

# Imported at first use: a conversation in graphloop's own values needs no reader of other forms.
__getattr__ = front_door(
    __name__,
    {
        ".ai_sdk": ("is_ai_sdk", "model_messages", "ui_messages"),
        ".chat_completions": ("chat_message",),
        ".responses": ("input_item", "is_output_item", "output_items"),
    },
)
