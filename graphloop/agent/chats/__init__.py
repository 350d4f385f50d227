"""Chats: conversations that go on over many runs, and over many processes."""
