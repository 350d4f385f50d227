"""Messages: the forms in which callers and files give the messages of a conversation.

Owns graphloop's own JSON form, and readers of two others: the form of OpenAI's chat completions,
and the AI SDK's `UIMessage` and `ModelMessage`.
Refuses a message that would lose a part on the way, and names the place of that part.
Start with `forms.py`.
"""

from .forms import MessageInput, dump_messages, load_messages, messages_of

__all__ = ["MessageInput", "dump_messages", "load_messages", "messages_of"]
