// A study: its cells with their scores, how far they are, and what they cost.

import { useEffect, useRef, useState } from '../vendor/hooks/index.js';
import { data } from './data.js';
import { brief, duration, money, plural, score, visible, whole } from './format.js';
import { html } from './html.js';
import { Crumbs, Interval, Problem, Title, useAnswer } from './parts.js';
import { toCell, toContrast, toStudy } from './routes.js';

export function StartPage() {
  const { value: names, error } = useAnswer(() => data.studies(), []);
  if (error) return html`<${Problem} error=${error} />`;
  if (!names) return html`<p class="loading">Loading…</p>`;
  if (names.length === 1) return html`<${StudyPage} study=${0} query=${{}} />`;
  return html`<main><${Title} window="Studies">Studies<//><ul class="plain">${names.map((name, i) => html`
    <li><a class="tile" href=${toStudy(i)}>${brief(name, 80)}</a></li>`)}</ul></main>`;
}

export function StudyPage({ study, query }) {
  const [count, setCount] = useState(0);
  const { value: found, error } = useAnswer(() => data.overview(study, query.metric), [study, query.metric, count]);
  const pace = usePace(found);
  useFollowed(study, () => setCount((n) => n + 1), found?.took);
  if (error && !found) return html`<${Problem} error=${error} />`;
  if (!found) return html`<p class="loading">Loading…</p>`;
  const ended = found.cells.reduce((n, c) => n + c.done + c.failed, 0);
  return html`<${Crumbs} links=${[]} /><main>
    <${Title} window=${found.name}>${brief(found.name, 80)}<//>
    <${Progress} found=${found} ended=${ended} pace=${pace} />
    ${found.problems.map((text) => html`<p class="problem">${visible(text)}</p>`)}
    ${found.cells.length ? html`<${Cells} study=${study} found=${found} />` : html`<p>No debate has started yet.</p>`}
    ${found.cells.length > 1 && html`<${Choice} study=${study} cells=${found.cells.map((c) => c.cell)} metric=${found.metric} />`}
    ${found.charts && data.charts && ended > 0 && html`<${Charts} study=${study} />`}
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
  const ended = found.cells.reduce((n, c) => n + c.done + c.failed, 0);
  first.current ??= { at: Date.now(), ended };
  const seconds = (Date.now() - first.current.at) / 1000;
  return ended > first.current.ended && seconds > 1 ? (ended - first.current.ended) / seconds : null;
}

function Progress({ found, ended, pace }) {
  const running = found.cells.reduce((n, c) => n + c.running, 0);
  const failed = found.cells.reduce((n, c) => n + c.failed, 0);
  const left = found.planned === null ? null : Math.max(0, found.planned - ended);
  const facts = [found.planned === null ? plural(ended, 'debate') : `${whole(ended)} of ${plural(found.planned, 'debate')}`];
  if (running) facts.push(`${whole(running)} not ended`);
  if (failed) facts.push(`${whole(failed)} failed`);
  if (pace && left) facts.push(`about ${duration(left / pace)} left`);
  const state = found.status ?? (running || left ? 'running or stopped' : 'all debates ended');
  return html`<div class="progress" aria-live="polite"><p><span class=${`state ${found.status ?? 'open'}`}>${state}</span> ${
    facts.join(' · ')}</p>${left ? html`<progress max=${found.planned} value=${ended} aria-label="Debates ended" />` : null}</div>`;
}

function Cells({ study, found }) {
  const scores = found.cells.filter((c) => c.score);
  const high = Math.max(1, ...scores.map((c) => c.score.ci95?.[1] ?? c.score.mean));
  const low = Math.min(0, ...scores.map((c) => c.score.ci95?.[0] ?? c.score.mean));
  const costs = found.cells.some((c) => c.cost_usd);
  const pick = (event) => { location.hash = toStudy(study, { metric: event.target.value }); };
  return html`<section><div class="bar"><h2>Cells</h2>${found.metrics.length > 1 && html`<label>Metric
    <select value=${found.metric} onChange=${pick}>${found.metrics.map((m) => html`<option value=${m}>${m}</option>`)}</select></label>`}</div>
    <div class="wide" role="region" aria-label="Cells" tabindex="0"><table class="cells">
    <thead><tr><th scope="col">cell</th><th scope="col" colspan="2">${found.metric ?? 'score'}</th><th scope="col" class="n">debates</th>
      <th scope="col" class="n">undecided</th><th scope="col" class="n">failed</th><th scope="col" class="n">calls each</th>
      <th scope="col" class="n">tokens each</th>${costs && html`<th scope="col" class="n">cost</th>`}</tr></thead>
    <tbody>${found.cells.map((c) => html`<${CellRow} key=${c.cell} study=${study} cell=${c} costs=${costs} low=${low} high=${high}
      settings=${found.settings[c.cell]} />`)}</tbody></table></div>
    <p class="quiet small">Points are means, lines 95% intervals over samples${high === 1 && low === 0 ? ', on a scale from 0 to 1' : ''}.
      Undecided debates count as wrong. Open a cell to see its debates.</p></section>`;
}

function CellRow({ study, cell, costs, low, high, settings }) {
  const ended = cell.done + cell.failed;
  const each = (sum) => (ended ? whole(sum / ended) : '–');
  const values = Object.entries(settings ?? {}).map(([k, v]) => [k, typeof v === 'string' ? v : JSON.stringify(v)]);
  const told = values.filter(([k, v]) => !cell.cell.includes(`${k.split('.').pop()}=${v}`)).map(([k, v]) => `${k} = ${brief(v, 60)}`);
  const range = cell.score?.ci95;
  return html`<tr><th scope="row"><a href=${toCell(study, cell.cell)}>${brief(cell.cell, 80)}</a>${
    told.length > 0 && html`<span class="quiet small block">${brief(told.join(', '), 160)}</span>`}</th>
    <td><${Interval} score=${cell.score} low=${low} high=${high} /></td>
    <td class="n">${score(cell.score?.mean)}${range && html`<span class="quiet small"> [${range.map((x) => x.toFixed(2)).join(', ')}]</span>`}</td>
    <td class="n" data-label="debates">${whole(ended)}${cell.running ? html`<span class="quiet small"> +${cell.running} open</span>` : null}</td>
    <td class="n" data-label="undecided">${whole(cell.undecided)}</td><td class="n" data-label="failed">${whole(cell.failed)}</td>
    <td class="n" data-label="calls each">${each(cell.calls)}</td><td class="n" data-label="tokens each">${each(cell.prompt + cell.completion)}</td>${
      costs && html`<td class="n" data-label="cost">${money(cell.cost_usd)}</td>`}</tr>`;
}

// The charts of `madplug report`, as pictures; large studies take a while, so they are drawn when asked for.
function Charts({ study }) {
  const [state, setState] = useState({});
  const draw = () => {
    setState({ busy: true });
    data.charts(study).then((charts) => setState({ charts, at: Date.now() }), (error) => setState({ error }));
  };
  return html`<section aria-busy=${String(Boolean(state.busy))}><div class="bar start"><h2>Charts</h2>
    <button type="button" class="button" onClick=${draw} disabled=${state.busy}>${
      state.busy ? 'drawing…' : state.charts ? 'draw them again' : 'draw the charts of the report'}</button></div>
    ${state.error && html`<${Problem} error=${state.error} />`}
    <div class="charts">${(state.charts ?? []).map((chart) => html`<figure key=${chart.name}><img alt=${chart.title}
      src=${`${data.chartAddress(study, chart.name)}?${state.at}`} /><figcaption><b>${chart.title}.</b> ${chart.caption}</figcaption></figure>`)}</div></section>`;
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
