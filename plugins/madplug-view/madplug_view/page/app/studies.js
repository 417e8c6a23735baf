// Several studies: a list with what one looks for, and two cells of any of them compared.

import { useEffect, useState } from '../vendor/hooks/index.js';
import { data } from './data.js';
import { brief, money, plural, rounded, score, visible, whole } from './format.js';
import { html } from './html.js';
import { Crumbs, Heading, Problem, Title, breakable, sortedBy, useAnswer } from './parts.js';
import { replaceQuery, toContrast, toStudy } from './routes.js';
import { StudyPage } from './study.js';

const OFTEN = 3000; // milliseconds between two looks at studies that may run

export function StartPage(given) {
  return given.names.length === 1 ? html`<${StudyPage} study=${0} query=${given.query} />` : html`<${Studies} ...${given} />`;
}

const SORTS = {
  study: (s) => s.name, date: (s) => s.date, state: (s) => s.state, cells: (s) => s.cells, debates: (s) => s.done + s.failed,
  score: (s) => s.best?.mean ?? -Infinity, cost: (s) => s.cost_usd ?? -1, models: (s) => s.models.join(),
};

function Studies({ names, query: asked, count, again }) {
  const query = asked.order ? asked : { ...asked, order: 'date', descending: '1' };
  const { value, error } = useAnswer(() => data.list(), [count]);
  useEffect(() => {
    const timer = data.live ? setInterval(again, OFTEN) : null;
    return () => clearInterval(timer);
  }, []);
  if (error) return html`<${Problem} error=${error} />`;
  if (!value) return html`<p class="loading">Loading…</p>`;
  const rows = sortedBy(value.map((s, i) => ({ ...s, number: i, name: names[i] ?? s.folder })), SORTS[query.order], query.descending);
  const head = (name, text, n) => html`<${Heading} name=${name} text=${text ?? name} query=${query} set=${(change) => replaceQuery({ ...query, ...change })} n=${n}
    first=${['study', 'state', 'models'].includes(name) ? '' : '1'} />`;
  return html`<${Crumbs} links=${[]} /><main><${Title} window="Studies">Studies<//>
    <div class="wide" role="region" aria-label="Studies" tabindex="0"><table class="cells">
    <thead><tr>${head('study')}${head('date', 'date (UTC)')}${head('state')}${head('cells', 'cells', true)}${head('debates', 'debates', true)}${
      head('score', 'best score', true)}${head('cost', 'cost', true)}${head('models')}</tr></thead>
    <tbody>${rows.map((s) => html`<${StudyRow} key=${s.number} study=${s} />`)}</tbody></table></div>
    <p class="quiet small">The best score is that of the cell with the highest mean, with its 95% interval: of many cells the best looks better than it is. A study is${' '}
      <i>stopped</i> if debates are left and no process is running them. <i>Serving</i> and <i>served</i> are studies whose debates clients ask for.</p>
    <${Compare} names=${names} /></main>`;
}

function StudyRow({ study: s }) {
  const { best } = s;
  return html`<tr><th scope="row"><a href=${toStudy(s.number)}>${breakable(brief(s.name, 60))}</a>${s.oracle && ' (oracle)'}${
    s.decided_again && html`<span class="quiet small block">${visible(s.decided_again)}</span>`}${
    s.problem && html`<span class="quiet small block">${visible(s.problem)}</span>`}</th>
    <td data-label="date" class="when">${s.date}</td><td><span class=${`state ${s.state}`}>${s.state}</span></td><td class="n" data-label="cells">${whole(s.cells)}</td>
    <td class="n" data-label="debates">${whole(s.done + s.failed)}${s.left ? html`<span class="quiet small"> of ${whole(s.done + s.failed + s.left)}</span>` : null}${
      s.failed ? html`<span class="small wrong block">${whole(s.failed)} failed</span>` : null}</td>
    <td class="n" data-label="best score">${best ? html`${score(best.mean)}${best.ci95 && html`<span class="quiet small when"> [${
      best.ci95.map((x) => rounded(x, 2)).join(', ')}]</span>`}<span class="quiet small block" title=${best.cell}>${breakable(best.metric)}, ${brief(best.cell, 40)}${best.tied > 0 && ` and ${plural(best.tied, 'cell')} more`}</span>` : '–'}</td>
    <td class="n" data-label="cost">${!s.calls ? '–' : s.cost_usd === null ? 'unknown' : money(s.cost_usd)}</td><td data-label="models">${brief(s.models.join(', '), 80) || '–'}</td></tr>`;
}

// A cell of one study beside a cell of the same or another one, on the samples that both have.
function Compare({ names }) {
  const [first, setFirst] = useState({ study: 0 });
  const [second, setSecond] = useState({ study: names.length > 1 ? 1 : 0 });
  const href = first.cell && second.cell && toContrast(first.study, first.cell, second.cell, { with: second.study === first.study ? '' : String(second.study) });
  return html`<section><h2>Compare two cells, also of different studies</h2><div class="bar start">
    <${Picked} names=${names} value=${first} set=${setFirst} label="First" /><${Picked} names=${names} value=${second} set=${setSecond} label="Second" />
    ${href && html`<a class="button" href=${href}>Compare on the same samples</a>`}</div></section>`;
}

function Picked({ names, value, set, label }) {
  const { value: found } = useAnswer(() => data.overview(value.study), [value.study]);
  const cells = found?.cells.map((c) => c.cell) ?? [];
  useEffect(() => { if (cells.length) set((now) => (cells.includes(now.cell) ? now : { ...now, cell: cells[0] })); }, [found]);
  return html`<fieldset><legend>${label}</legend><label><span class="sr">Study</span><select value=${String(value.study)} onChange=${(e) => set({ study: Number(e.target.value) })}>${
    names.map((name, i) => html`<option value=${String(i)}>${brief(name, 50)}</option>`)}</select></label>
    <label><span class="sr">Cell</span><select value=${value.cell} onChange=${(e) => set({ ...value, cell: e.target.value })}>${
    cells.map((c) => html`<option value=${c}>${brief(c, 60)}</option>`)}</select></label></fieldset>`;
}
