"""The report as one page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from madplug_report import contents, tables
from madplug_report.charts import Chart
from madplug_report.charts.style import css
from madplug_report.escape import in_html
from madplug_report.texts import headline, method

STYLE = """
body{margin:0 auto;padding:1.5rem;max-width:76rem;font:15px/1.5 system-ui,sans-serif}
body{background:var(--page);color:var(--text)}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}h1,h2,p,figcaption{overflow-wrap:anywhere}
.notes{border-left:4px solid var(--warn);padding:.2rem 0 .2rem 1rem;margin:1rem 0;color:var(--warn)}
.notes p{margin:.25rem 0}.oracle{font-weight:700}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid)}
.wide:has(>table){max-height:85vh;overflow:auto}
thead th{border-bottom:2px solid var(--quiet)}thead{position:sticky;top:0;z-index:1;background:var(--page)}
tbody th{font-weight:400;position:sticky;left:0;background:var(--page)}
@media(max-width:40rem){tbody th{min-width:7rem;max-width:40vw;white-space:normal;overflow-wrap:anywhere}}
th:first-child{text-align:left}@media print{.wide:has(>table){max-height:none;overflow:visible}}
th[colspan]{text-align:center}td.best{font-weight:700}
figure{margin:1rem 0 2.5rem}figcaption{color:var(--quiet);font-size:13px;max-width:60rem}
svg{width:100%;max-width:60rem;min-width:38rem;height:auto;display:block}
svg text{font-family:'DejaVu Sans',Verdana,sans-serif}
footer,.method{color:var(--quiet);font-size:13px;max-width:60rem}
"""


def page(report: Mapping[str, Any], made: Sequence[Chart]) -> str:
    """The whole page with these charts. Nothing in it can run or load anything: its own policy forbids both."""
    title = in_html(headline(report))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{title}</title><style>{css()}{STYLE}</style></head><body>
<h1>{title}</h1>
{"".join(_notes(report))}
{"".join(f"<h2>{in_html(t.title)}</h2>{tables.html(t)}" for t in contents.more_tables(report))}
{"".join(_charts(made))}
<h2>How these figures were made</h2><div class="method">{"".join(f"<p>{in_html(s)}</p>" for s in method(report))}</div>
<footer>{"".join(f"<p>{in_html(s)}</p>" for s in _provenance(report))}</footer>
</body></html>
"""


def _notes(report: Mapping[str, Any]) -> Iterator[str]:
    if report["notes"]:
        yield '<div class="notes">'
        for note in report["notes"]:
            mark = ' class="oracle"' if note["about"] == "oracle" else ""
            yield f"<p{mark}>{in_html(note['text'])}</p>"
        yield "</div>"


def _charts(made: Sequence[Chart]) -> Iterator[str]:
    for chart in made:
        yield (f'<figure id="{chart.name}"><h2>{in_html(chart.title)}</h2><div class="wide">{chart.svg}</div>'
               f"<figcaption>{in_html(chart.caption)}</figcaption></figure>\n")


def _provenance(report: Mapping[str, Any]) -> Iterator[str]:
    for study in report["studies"]:
        made = f", made with madplug {study['madplug']}" if study["madplug"] else ""
        yield f"Study '{study['name']}' in {study['folder']}{made}: {study['debates']} debates."
        for table, fingerprint in study["data"].items():
            yield f"Data: {table} {fingerprint}".rstrip()
        for problem in study["problems"]:
            yield f"Problem of the study: {problem}"
