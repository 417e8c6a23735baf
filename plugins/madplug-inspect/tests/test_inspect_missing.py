"""Without inspect_ai, which is an extra, everything says what to install."""

from importlib.util import find_spec

import pytest
from click.testing import CliRunner

from madplug import UserError
from madplug.cli.program import main
from madplug_inspect.dataset import Imported
from madplug_inspect.observer import Logs
from madplug_testing import play

pytestmark = pytest.mark.skipif(find_spec("inspect_ai") is not None, reason="inspect-ai is installed")
SAID = "needs inspect_ai, which is not installed: pip install 'madplug-inspect"


def test_the_command_the_data_set_and_the_observer_say_what_to_install(tmp_path):
    done = CliRunner().invoke(main, ["inspect", str(tmp_path)])
    assert done.exit_code == 2
    assert SAID in done.stderr
    with pytest.raises(UserError, match=r"inspect.dataset needs inspect_ai"):
        Imported(source="inspect_ai.dataset:example_dataset").size()
    played = play(replies=lambda request: "A", observers=[Logs()])
    assert SAID in played.problems[0]
    assert played.result.error is None, "the debate goes on"
