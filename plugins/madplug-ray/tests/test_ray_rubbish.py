"""What an actor sends that cannot be understood."""

import asyncio

import pytest

ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'madplug-ray[ray]'")


class Handle:
    """Stands in for an actor: a real one sends only what was packed."""

    def __init__(self):
        self.collect = self

    def remote(self):
        answer = asyncio.get_running_loop().create_future()
        answer.set_result([b"rubbish"])
        return answer


def test_an_actor_that_sends_what_cannot_be_read_is_lost_and_said_once(monkeypatch):
    from madplug_ray.actors import Actor
    from madplug_workers import wire

    killed, lost = [], []
    monkeypatch.setattr(ray, "kill", killed.append)

    async def collect():
        actor = Actor(Handle(), wire.unpack, lost.append)
        await asyncio.wait_for(actor._collecting, 30)
        actor._report(ValueError("later"))
        return actor

    actor = asyncio.run(collect())
    assert [text[:10] for text in lost] == ["was lost ("]
    assert killed == [actor._handle]
