"""Statements that damage a study's database: `HOSTILE` the debate on sample q, `HOSTILE_ROWS` everything else."""

DEEP = "[" * 100_000 + "]" * 100_000
HOSTILE = {
    "not JSON": "UPDATE debates SET record = 'x' WHERE sample = 'q'",
    "missing fields": "UPDATE debates SET record = '{}', opening = '{\"cell\":\"c\"}' WHERE sample = 'q'",
    "wrong type": "UPDATE messages SET record = replace(record, '\"round\":1', '\"round\":\"one\"') WHERE debate = 1",
    "a message that is a number": "UPDATE messages SET record = '7' WHERE debate = 1",
    "a number for a text": "UPDATE debates SET opening = 7 WHERE sample = 'q'",
    "bytes": "UPDATE debates SET opening = x'ff00' WHERE sample = 'q'",
    "lines": "UPDATE debates SET agents = '[' || char(10) || ']' WHERE sample = 'q'",
    "deep": f"UPDATE debates SET record = '{{\"notes\":{{\"a\":{DEEP}}}}}' WHERE sample = 'q'",
    "metrics": "UPDATE debates SET metrics = '[1]' WHERE sample = 'q'",
}
HOSTILE_ROWS = [
    "UPDATE calls SET prompt = 9223372036854775807, completion = 9223372036854775807",
    "UPDATE contents SET request = 'x'", "UPDATE calls SET key = 7 WHERE number = 1",
    "UPDATE contents SET text = CAST(x'ff' AS TEXT)", "DELETE FROM contents",
    "UPDATE facts SET value = '{'", "UPDATE facts SET value = '[]'",
    "UPDATE problems SET text = x'ff'", "UPDATE debates SET calls = 'many', cost_usd = 'much'"]
