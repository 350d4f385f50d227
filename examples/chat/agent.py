"""A chat that remembers: each question is a run, and the next process continues the chat.

graphloop run examples/chat
python examples/chat/agent.py chats.db "I am Ada."          remembers the question in chats.db
python examples/chat/agent.py chats.db "Who am I?"          asks with the conversation before it
"""

import sys

from graphloop import Agent, Model
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest, UserMessage

PROMPT = "Who am I?"


def build(model: Model) -> Agent:
    """Return the agent, asking `model`."""
    return Agent(model, instructions="Be brief.")


def reply(request: ModelRequest) -> str:
    """Answer for a model, by what the user has said so far."""
    *earlier, _ = (one.content for one in request.messages if isinstance(one, UserMessage))
    return f"Before this, you said: {' '.join(map(str, earlier)) or 'nothing.'}"


def main(store: str, question: str) -> None:
    """Ask one question of the chat "user-42", which may have begun in another process."""
    chat = build(ScriptedModel([reply])).chat("user-42", store=store)
    print(chat.send_sync(question).text)


if __name__ == "__main__":
    main(*sys.argv[1:])
