"""Whether the hub can be reached, and which commit it has: asked once, with a deadline, before heavy imports."""

from __future__ import annotations

import re
import threading
from typing import Any

from madplug import UserError
from madplug_files.problems import problem

SECONDS = 10.0
"""How long the hub has to answer, in seconds."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_known: dict[tuple[str, str, str | None], str | None] = {}


def is_commit(revision: str | None) -> bool:
    """Whether a revision is a full commit hash."""
    return revision is not None and _COMMIT.fullmatch(revision) is not None


def commit(name: str, revision: str | None) -> str | None:
    """The commit of a data set's revision, or None when the hub is out of reach.

    Raises `UserError` if the hub refuses access.
    """
    from huggingface_hub import constants

    if constants.is_offline_mode():
        return None
    key = (constants.ENDPOINT, name, revision)
    if key not in _known:
        _known[key] = _asked(name, revision)
    return _known[key]


def _asked(name: str, revision: str | None) -> str | None:
    """Ask in a separate thread, because no timeout of a connection covers the DNS lookup."""
    answer: list[Any] = []
    thread = threading.Thread(target=lambda: answer.append(_ask(name, revision)), daemon=True)
    thread.start()
    thread.join(SECONDS)
    found = answer[0] if answer else None
    if isinstance(found, UserError):
        raise found
    return found


def _ask(name: str, revision: str | None) -> str | UserError | None:
    import httpx
    from huggingface_hub import HfApi, get_token
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        info = HfApi().dataset_info(name, revision=revision, timeout=SECONDS / 2)
    except (HfHubHTTPError, HFValidationError) as error:
        return refusal(name, revision, error)
    except (httpx.HTTPError, OSError, ValueError):
        return None
    if info.gated and get_token() is None:
        return gated(name)
    return info.sha


def refusal(name: str, revision: str | None, error: Exception) -> UserError:
    """The error for the run file that a response of the hub means."""
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    if isinstance(error, GatedRepoError):
        return gated(name)
    if isinstance(error, RevisionNotFoundError):
        return problem("dataset.revision", f"'{name}' has no revision '{revision}'")
    if isinstance(error, RepositoryNotFoundError):
        return problem("dataset.id", f"there is no data set '{name}' on the hub, or it is private; in that case set "
                                     "HF_TOKEN to a token with access")
    if isinstance(error, HFValidationError):
        return problem("dataset.id", f"'{name}' is not the name of a data set; expected owner/name")
    response = getattr(error, "response", None)
    status = f"status {response.status_code}" if response is not None else str(error).split("\n", 1)[0]
    return problem("dataset", f"the hub answers {status} for '{name}'; try again later, or read local rows with path")


def gated(name: str) -> UserError:
    """The error for a data set whose terms must be accepted first."""
    from huggingface_hub import get_token

    has = "the token in use has no access yet" if get_token() else "there is no token"
    return problem("dataset", f"'{name}' is gated, and {has}: accept its terms on the hub's page of the data set, "
                              "set HF_TOKEN to a token of that account, or read local rows with path")


def unreachable(name: str) -> UserError:
    """The error for a hub that does not answer, with nothing cached."""
    return problem("dataset", f"'{name}' is not in the local cache and the hub is out of reach; connect, or copy the "
                              "rows here and name the file with path")
