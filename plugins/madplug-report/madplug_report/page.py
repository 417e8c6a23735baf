"""The report as one page that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from madplug_report import contents, tables
from madplug_report.charts import Chart
from madplug_report.charts.style import css
from madplug_report.escape import in_html
from madplug_report.texts import headline, method

METHOD = "How these figures were made"
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
nav{font-size:13px;columns:14rem;margin:1rem 0;padding:.6rem 1rem;border:1px solid var(--grid);border-radius:8px}
nav a{display:block;padding:.1rem 0;color:inherit;overflow-wrap:anywhere}
h2{scroll-margin-top:1rem}th button{all:unset;cursor:pointer}th button:hover{text-decoration:underline}
th button:focus-visible{outline:2px solid var(--blue);outline-offset:2px}
th[aria-sort=ascending] button::after{content:" ▲";font-size:.7em}
th[aria-sort=descending] button::after{content:" ▼";font-size:.7em}
.wide{scrollbar-color:var(--quiet) var(--grid)}
@property --more{syntax:"<length>";inherits:false;initial-value:0px}@keyframes edge{from{--more:4rem}to{--more:0px}}
@property --below{syntax:"<length>";inherits:false;initial-value:0px}@keyframes foot{from{--below:4rem}to{--below:0px}}
@supports (animation-timeline:scroll()){.wide{mask-image:linear-gradient(to left,rgb(0 0 0/15%),#000 var(--more)),
linear-gradient(to top,rgb(0 0 0/15%),#000 var(--below));mask-composite:intersect;
animation:edge linear both,foot linear both;
animation-timeline:scroll(self inline),scroll(self block)}}
@media(min-width:100rem){body{max-width:94rem;padding-left:18rem}
nav{position:fixed;box-sizing:border-box;left:1rem;top:1rem;width:15rem;max-height:calc(100vh - 4rem);
overflow:auto;columns:auto}}
@media print{nav{display:none}.wide{mask-image:none}}
footer,.method{color:var(--quiet);font-size:13px;max-width:60rem}
"""

# A heading that is pressed sorts its table: the highest first, then the lowest, then as the report has it.
SCRIPT = """
const value = (row, i) => {
  const text = row.cells[i].textContent.replace(/\u2212/g, '-');
  const number = parseFloat(text.replace(/^[^\\d.+-]*/, '').replace(/,/g, ''));
  return Number.isNaN(number) || i === 0 ? text : number;
};
const compare = (a, b) => typeof a === 'number' && typeof b === 'number' ? b - a
  : typeof a === typeof b ? b.localeCompare(a, 'en', { numeric: true }) : typeof a === 'number' ? -1 : 1;
for (const table of document.querySelectorAll('table')) {
  const body = table.tBodies[0], rows = [...body.rows];
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  heads.forEach((head, i) => {
    if (!head.textContent) return;
    const button = document.createElement('button');
    button.append(...head.childNodes);
    head.append(button);
    button.onclick = () => {
      const next = { null: 'descending', descending: 'ascending', ascending: null }[head.getAttribute('aria-sort')];
      heads.forEach((other) => other.removeAttribute('aria-sort'));
      if (next) head.setAttribute('aria-sort', next);
      const sorted = next ? [...rows].sort((a, b) => compare(value(a, i), value(b, i))) : rows;
      body.append(...(next === 'ascending' ? sorted.reverse() : sorted));
    };
  });
}
"""


def page(report: Mapping[str, Any], made: Sequence[Chart]) -> str:
    """The whole page with these charts. Its own policy lets it load nothing, and run only what sorts its tables."""
    title = in_html(headline(report))
    sheets = [(f"table-{i}", table) for i, table in enumerate(contents.more_tables(report), 1)]
    hashed = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hashed}'"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{title}</title><style>{css()}{STYLE}</style></head><body>
<h1>{title}</h1>
{"".join(_notes(report))}
{_contents([*((id, t.title) for id, t in sheets), *((c.name, c.title) for c in made), ("method", METHOD)])}
{"".join(f'<h2 id="{id}">{in_html(t.title)}</h2>{tables.html(t)}' for id, t in sheets)}
{"".join(_charts(made))}
<h2 id="method">{METHOD}</h2><div class="method">{"".join(f"<p>{in_html(s)}</p>" for s in method(report))}</div>
<footer>{"".join(f"<p>{in_html(s)}</p>" for s in _provenance(report))}</footer>
<script>{SCRIPT}</script>
</body></html>
"""


def _contents(parts: Sequence[tuple[str, str]]) -> str:
    links = "".join(f'<a href="#{id}">{in_html(title)}</a>' for id, title in parts)
    return f'<nav aria-label="Contents">{links}</nav>'


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
