// A study: its cells with their scores, how far they are, and what they cost.

import { useEffect, useRef, useState } from '../vendor/hooks/index.js';
import { data } from './data.js';
import { brief, duration, money, plural, rounded, score, visible, whole } from './format.js';
import { html } from './html.js';
import { Crumbs, Heading, Interval, Oracle, Problem, Title, breakable, sortedBy, told, useAnswer } from './parts.js';
import { Pivot } from './pivot.js';
import { replaceQuery, toCell, toContrast } from './routes.js';

export function StudyPage({ study, query }) {
  const [count, setCount] = useState(0);
  const { value: found, error } = useAnswer(() => data.overview(study, query.metric), [study, query.metric, count]);
  const pace = usePace(found);
  useFollowed(study, () => setCount((n) => n + 1), found?.took);
  if (error && !found) return html`<${Problem} error=${error} />`;
  if (!found) return html`<p class="loading">Loading…</p>`;
  const all = found.cells.reduce((n, c) => n + ended(c), 0);
  const more = [all > 0 && html`<${Places} study=${study} cells=${found.cells} />`,
    found.cells.length > 1 && html`<${Choice} study=${study} cells=${found.cells.map((c) => c.cell)} metric=${found.metric} />`];
  const long = found.cells.length > LONG;
  return html`<${Crumbs} links=${[]} /><main>
    <${Title} window=${found.name}>${brief(found.name, 80)}<//><${Oracle} of=${found} />
    <${Progress} found=${found} ended=${all} pace=${pace} />
    ${found.problems.map((text) => html`<p class="problem">${visible(text)}</p>`)}
    ${found.failures.map(([why, times]) => html`<p class="problem">${whole(times)} failed: ${visible(brief(why, 400))}</p>`)}
    ${found.decided_again && html`<p class="quiet small">${visible(found.decided_again)}</p>`}
    ${found.edited.map((text) => html`<p class="quiet small">${visible(text)}</p>`)}
    ${found.estimated.length > 0 && html`<p class="quiet small">The tokens of ${visible(found.estimated.join(', '))} are estimated from the texts: the endpoint reports none.</p>`}
    ${long && more}
    ${found.cells.length ? html`<${Cells} study=${study} found=${found} query=${query} /><${Pivot} study=${study} found=${found} query=${query} />` : html`<p>No debate has started yet.</p>`}
    ${!long && more}
    ${found.charts && all > 0 && html`<${Charts} study=${study} many=${all > MOST_DRAWN} />`}
  </main>`;
}

// Asks again when the study has changed, and rests between: ten times as long as the answer took, at least a second.
export function useFollowed(study, changed, took) {
  const rest = useRef(1000);
  rest.current = Math.max(1000, 10_000 * (took ?? 0));
  useEffect(() => {
    let timer = null;
    const stop = data.follow(study, (event) => {
      timer ??= setTimeout(() => { timer = null; changed(event); }, rest.current);
    });
    return () => { clearTimeout(timer); stop(); };
  }, [study]);
}

// Debates per second since the page was opened, from what it has seen itself.
function usePace(found) {
  const first = useRef(null);
  if (!found) return null;
  const all = found.cells.reduce((n, c) => n + ended(c), 0);
  first.current ??= { at: Date.now(), all };
  const seconds = (Date.now() - first.current.at) / 1000;
  return all > first.current.all && seconds > 1 ? (all - first.current.all) / seconds : null;
}

function Progress({ found, ended, pace }) {
  const running = found.cells.reduce((n, c) => n + c.running, 0);
  const failed = found.cells.reduce((n, c) => n + c.failed, 0);
  const left = found.planned === null ? null : Math.max(0, found.planned - ended);
  const facts = [found.planned === null ? plural(ended, 'debate') : `${whole(ended)} of ${plural(found.planned, 'debate')}`];
  if (running) facts.push(`${whole(running)} not ended`);
  if (failed) facts.push(`${whole(failed)} failed`);
  if (found.paid?.calls) facts.push(`${plural(found.paid.calls, 'call')} paid${found.paid.cost_usd ? `, ${money(found.paid.cost_usd)}` : ''}`);
  if (pace && left && found.status === 'running') facts.push(`about ${duration(left / pace)} left`);
  return html`<div class="progress" aria-live="polite"><p><span class=${`state ${found.status}`}>${found.status}</span> ${
    facts.join(' · ')}</p>${left ? html`<progress max=${found.planned} value=${ended} aria-label="Debates ended" />` : null}</div>`;
}

const MANY = 8; // cells from which on they can be filtered
const LONG = 20; // cells of a table that leaves nothing else in view
const ended = (cell) => cell.done + cell.failed;
const SORTS = {
  cell: (c) => c.cell, score: (c) => c.score?.mean ?? -Infinity, debates: ended, undecided: (c) => c.undecided, failed: (c) => c.failed,
  calls: (c) => c.calls / (ended(c) || 1), tokens: (c) => (c.prompt + c.completion) / (ended(c) || 1), cost: (c) => c.cost_usd ?? -1,
};

function Cells({ study, found, query }) {
  const scores = found.cells.filter((c) => c.score);
  const high = Math.max(1, ...scores.map((c) => c.score.ci95?.[1] ?? c.score.mean));
  const low = Math.min(0, ...scores.map((c) => c.score.ci95?.[0] ?? c.score.mean));
  const costs = found.cells.some((c) => c.cost_usd);
  const set = (change) => replaceQuery({ ...query, ...change });
  const words = (query.named ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const shown = sortedBy(found.cells.filter((c) => words.every((w) => c.cell.toLowerCase().includes(w))), SORTS[query.order], query.descending);
  const head = (name, text, more) => html`<${Heading} name=${name} text=${text} query=${query} set=${set} first=${name === 'cell' ? '' : '1'} ...${more} />`;
  return html`<section><div class="bar"><h2>Cells</h2><div class="bar start">
    ${found.cells.length > 1 && html`<a class="button" href=${toCell(study, '')}>All debates</a>`}
    ${found.cells.length >= MANY && html`<label><span class="sr">Cells whose name contains</span><input type="search" placeholder="Filter by name"
      value=${query.named ?? ''} onInput=${(e) => set({ named: e.target.value })} /></label>
      <span class="quiet small" role="status">${words.length ? `${whole(shown.length)} of ${plural(found.cells.length, 'cell')}` : plural(found.cells.length, 'cell')}</span>`}
    ${found.metrics.length > 1 && html`<label>Metric <select value=${found.metric} onChange=${(e) => set({ metric: e.target.value })}>${
      found.metrics.map((m) => html`<option value=${m}>${m}</option>`)}</select></label>`}</div></div>
    <div class="wide" role="region" aria-label="Cells" tabindex="0"><table class="cells">
    <thead><tr>${head('cell', 'cell')}${head('score', found.metric ?? 'score', { colspan: 2 })}${head('debates', 'debates', { n: true })}${
      head('undecided', 'undecided', { n: true })}${head('failed', 'failed', { n: true })}${head('calls', 'calls each', { n: true })}${
      head('tokens', 'tokens each', { n: true })}${costs && head('cost', 'cost', { n: true })}</tr></thead>
    <tbody>${shown.map((c) => html`<${CellRow} key=${c.cell} study=${study} cell=${c} costs=${costs} low=${low} high=${high}
      settings=${found.settings[c.cell]} />`)}</tbody></table></div>
    <p class="quiet small">Points are means, lines 95% intervals over samples${high === 1 && low === 0 ? ', on a scale from 0 to 1' : ''}.
      A failed debate has no score; for qa.accuracy, an undecided one is wrong. Open a cell to see its debates.</p></section>`;
}

function CellRow({ study, cell, costs, low, high, settings }) {
  const each = (sum) => {
    const mean = sum / ended(cell);
    return ended(cell) ? Number(rounded(mean, mean < 100 ? 1 : 0)).toLocaleString('en') : '–';
  };
  const values = Object.entries(settings ?? {}).map(([k, v]) => [k, told(v)]);
  const shown = values.filter(([k]) => !cell.cell.includes(`${k.split('.').pop()}=`)).map(([k, v]) => `${k} = ${brief(v, 60)}`);
  const range = cell.score?.ci95;
  const unscored = cell.score ? cell.done - cell.score.debates : 0;
  return html`<tr><th scope="row"><a href=${toCell(study, cell.cell)}>${breakable(brief(cell.cell, 80))}</a>${
    shown.length > 0 && html`<span class="quiet small block">${brief(shown.join(', '), 160)}</span>`}</th>
    <td><${Interval} score=${cell.score} low=${low} high=${high} /></td>
    <td class="n mean">${score(cell.score?.mean)}${range && html`<span class="quiet small"> [${range.map((x) => rounded(x, 2)).join(', ')}]</span>`}${unscored > 0 && html`<span class="quiet small block">${unscored} without a score</span>`}</td>
    <td class="n" data-label="debates">${cell.partial ? html`<span class="quiet small">${cell.partial} partial of </span>` : null}${whole(ended(cell))}${cell.fallback ? html`<span class="quiet small block">${cell.fallback} by fallback</span>` : null}${cell.running ? html`<span class="quiet small"> +${cell.running} open</span>` : null}</td>
    <td class="n" data-label="undecided">${whole(cell.undecided)}</td><td class="n" data-label="failed">${whole(cell.failed)}</td>
    <td class="n" data-label="calls each">${each(cell.calls)}</td><td class="n" data-label="tokens each">${each(cell.prompt + cell.completion)}</td>${
      costs && html`<td class="n" data-label="cost">${money(cell.cost_usd)}</td>`}</tr>`;
}

const MOST_DRAWN = 20_000; // debates of a study whose charts are drawn without being asked for

// The charts of `madplug report`, as pictures, drawn once they come into view.
function Charts({ study, many }) {
  const [state, setState] = useState({});
  const draw = () => {
    setState({ busy: true });
    data.charts(study).then((charts) => setState({ charts: charts.map((c) => ({ ...c, at: Date.now() })) }), (error) => setState({ error }));
  };
  const box = useRef(null);
  useEffect(() => {
    if (many && data.live) return undefined;
    let timer = null; // who only passes by does not wait for them
    const watch = new IntersectionObserver(([entry]) => {
      clearTimeout(timer);
      if (entry.isIntersecting) timer = setTimeout(() => { watch.disconnect(); draw(); }, 1000);
    });
    watch.observe(box.current);
    return () => { clearTimeout(timer); watch.disconnect(); };
  }, []);
  return html`<section ref=${box} aria-busy=${String(Boolean(state.busy))}><div class="bar start"><h2>Charts</h2>
    ${data.live && html`<button type="button" class="button" onClick=${draw} disabled=${state.busy}>${
      state.busy ? 'drawing…' : state.charts ? 'draw them again' : 'draw the charts of the report'}</button>`}</div>
    ${state.error && html`<${Problem} error=${state.error} />`}
    <div class="charts">${(state.charts ?? []).map((chart) => html`<figure key=${chart.name}><div class="wide"><img
      alt=${chart.title} src=${data.chartAddress(study, chart)} /></div><figcaption><b>${chart.title}.</b> ${chart.caption}</figcaption></figure>`)}</div></section>`;
}

const PLACES = [
  ['a right majority ended with a wrong answer', 'majority_lost'],
  ['a right minority lost, and a right answer was given up', 'wrong,right_to_wrong,minority_right'],
  ['a wrong majority was put right', 'right,wrong_to_right,minority_right'], ['an agent changed its mind', 'changed'],
  ['nothing was decided', 'undecided'], ['a fallback decided', 'fallback'], ['something failed', 'failed'],
];

// What people come for: searches through the debates of all cells.
function Places({ study, cells }) {
  const empty = ['undecided', 'fallback', 'failed'].filter((name) => cells.every((c) => !c[name]));
  return html`<section><h2>Debates in which</h2><ul class="plain places">${PLACES.filter(([, traits]) => !empty.includes(traits)).map(
    ([text, traits]) => html`<li key=${traits}><a href=${toCell(study, '', { traits })}>${text}</a></li>`)}</ul></section>`;
}

function Choice({ study, cells, metric }) {
  const [first, setFirst] = useState(cells[0]);
  const [second, setSecond] = useState(cells[1]);
  const select = (value, set, label) => html`<label>${label} <select value=${value} onChange=${(e) => set(e.target.value)}>${
    cells.map((c) => html`<option value=${c}>${brief(c, 70)}</option>`)}</select></label>`;
  return html`<section><h2>Compare two cells</h2><div class="bar start">${select(first, setFirst, 'First')}
    ${select(second, setSecond, 'Second')}
    <a class="button" href=${toContrast(study, first, second, { metric })}>Compare on the same samples</a></div></section>`;
}
