"""Read a contact out of a letter: a typed answer, as it grows and when it does not fit."""

import asyncio

from pydantic import BaseModel, Field

from graphloop import Agent, OutputInvalid
from graphloop.testing import ScriptedModel


class Contact(BaseModel):
    """Whom to call."""

    name: str
    phones: list[str] = Field(min_length=1)


def answers(*contacts: dict[str, object]) -> list[dict[str, object]]:
    """Return the turns in which a model gives these answers."""
    return [{"calls": [{"name": "final_answer", "arguments": each}]} for each in contacts]


NO_PHONE: dict[str, object] = {"name": "Ada", "phones": []}
WITH_PHONE: dict[str, object] = {"name": "Ada", "phones": ["555-0100"]}


async def main() -> None:
    """Stream an answer that is corrected once, then meet a model that never gets it right."""
    agent = Agent(ScriptedModel(answers(NO_PHONE, WITH_PHONE)), output_type=Contact)
    stream = agent.stream("Whom do I call? 'Yours, Ada, 555-0100'")
    async for growing in stream.object_stream:
        print("…", growing)
    contact = (await stream.result()).output
    print(contact.name.upper(), contact.phones[0])

    stubborn = Agent(ScriptedModel(answers(NO_PHONE, NO_PHONE)), output_type=Contact)
    try:
        await stubborn.with_options(max_output_retries=1).generate("Whom do I call?")
    except OutputInvalid as error:
        print(error)


if __name__ == "__main__":
    asyncio.run(main())
