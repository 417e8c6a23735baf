// A cell: every debate as a row of marks, to filter, sort and search.

import { useEffect, useRef, useState } from '../vendor/hooks/index.js';
import { data } from './data.js';
import { brief, money, plural, rounded, score, whole } from './format.js';
import { html } from './html.js';
import { Chip, Crumbs, Legend, Marks, Oracle, Problem, Title, useAnswer, useKeys } from './parts.js';
import { factorsOf } from './pivot.js';
import { Rich } from './rich.js';
import { readRoute, replaceQuery, toContrast, toDebate, toPair, toStudy } from './routes.js';
import { useFollowed } from './study.js';

const FILTERS = {
  wrong: 'wrong', right: 'right', changed: 'changed mind', right_to_wrong: 'right turned wrong',
  wrong_to_right: 'wrong turned right', minority_right: 'a right minority at first', majority_lost: 'a right majority at first, a wrong end', undecided: 'undecided',
  failed: 'failed', partial: 'partial (an agent failed)', fallback: 'decided by a fallback', tie: 'a tie', unread: 'unreadable answers', ballot_unread: 'unreadable final answers, ballots, marks or forms', retracted: 'retracted', altered: 'altered', running: 'not ended',
};
const ORDERS = {
  sample: 'sample', started: 'start', changes: 'changes of mind', rounds: 'rounds', messages: 'messages', calls: 'calls', tokens: 'tokens',
  cost: 'cost', seconds: 'seconds',
};
const FIELD_NAMES = { both: 'right in both', first: 'right only here', second: 'right only there', neither: 'wrong in both' };

// The list that the reader came from, so that a debate's page can lead to the next one.
export const list = { study: null, search: {}, rows: [], next: null };

export function CellPage({ study, cell, query }) {
  const about = useAnswer(() => data.overview(study, query.metric), [study, query.metric]);
  const overview = about.value;
  const found = useRows(study, cell, query);
  useKeys((event) => moveFocus(event), []);
  Object.assign(list, { study, search: found.search, rows: found.rows, next: found.next });
  if (about.error) return html`<${Problem} error=${about.error} />`;
  if (!overview) return html`<p class="loading">Loading…</p>`;
  const within = query.cells ? JSON.parse(query.cells) : [];
  const facts = cell ? overview.cells.find((c) => c.cell === cell)
    : together(overview.cells.filter((c) => !within.length || within.includes(c.cell)));
  if (!facts) return html`<${Problem} error=${`This study has no cell '${cell}'.`} />`;
  return html`<${Crumbs} links=${[[overview.name, toStudy(study)]]} /><main>
    <${Title} window=${cell || 'All debates'}>${cell ? brief(cell, 100) : 'All debates'}<//><${Oracle} of=${overview} />
    <${Facts} cell=${facts} metric=${overview.metric} paid=${within.length || cell ? null : overview.paid} />
    <${Filters} study=${study} cell=${cell} query=${query} overview=${overview} scanned=${found.rows} />
    <${Legend} />
    <${Rows} study=${study} query=${query} found=${found} cell=${facts} named=${!cell} />
  </main>`;
}

// The sums of all cells, as of one.
function together(cells) {
  const sum = (name) => cells.reduce((n, c) => n + c[name], 0);
  const names = ['done', 'failed', 'running', 'undecided', 'partial'];
  return { ...Object.fromEntries(names.map((name) => [name, sum(name)])), repeats: Math.max(1, ...cells.map((c) => c.repeats)) };
}

// The costs of one cell are those of its debates; of several, what was paid, since they share calls.
function Facts({ cell, metric, paid }) {
  const facts = [plural(cell.done + cell.failed, 'debate')];
  if (cell.score) {
    const range = cell.score.ci95;
    facts.push(`${metric} ${score(cell.score.mean)}${range ? ` [${range.map((x) => rounded(x, 2)).join(', ')}]` : ''}`);
  }
  if (cell.partial) facts.unshift(`${whole(cell.partial)} partial: an agent failed`);
  if (cell.undecided) facts.push(`${whole(cell.undecided)} undecided`);
  if (cell.failed) facts.push(`${whole(cell.failed)} failed`);
  if (cell.running) facts.push(`${whole(cell.running)} not ended`);
  if (paid || cell.cell) facts.push(paid ? `${plural(paid.calls, 'call')} paid` : plural(cell.calls, 'call'));
  if ((paid ?? cell).cost_usd) facts.push(money((paid ?? cell).cost_usd));
  return html`<p class="facts">${facts.join(' · ')}</p>`;
}

const chosen = (query) => (query.traits ? query.traits.split(',') : []);

// How many debates each filter would leave; asked for again while they are being looked at.
function useCounts(study, search, rows) {
  const [again, setAgain] = useState(0);
  const { value } = useAnswer(() => data.counts(study, search), [study, JSON.stringify(search), rows, again]);
  useEffect(() => {
    const timer = value && !value.whole ? setTimeout(() => setAgain(again + 1), 1000) : null;
    return () => clearTimeout(timer);
  }, [value]);
  return value;
}

function Filters({ study, cell, query, overview, scanned }) {
  const on = chosen(query);
  const counts = useCounts(study, searchOf(cell, query), scanned);
  const some = (name) => on.includes(name) || !counts?.whole || counts.traits[name];
  const alone = !['text', 'other', 'field', 'tag', 'with'].some((key) => query[key]); // a number is of filters and groups
  const others = cell ? overview.cells.map((c) => c.cell).filter((c) => c !== cell) : [];
  const set = (change) => replaceQuery({ ...readRoute(location.hash).query, ...change }); // a search is set a little later
  const toggle = (name) => set({ traits: (on.includes(name) ? on.filter((t) => t !== name) : [...on, name]).join(',') });
  return html`<form class="filters" role="search" onSubmit=${(e) => e.preventDefault()}>
    <div class="toggles" role="group" aria-label="Show only debates">${Object.keys(FILTERS).filter((t) => t in overview.traits).filter(some).map((name) => html`
      <button type="button" key=${name} class="toggle" aria-pressed=${String(on.includes(name))} title=${overview.traits[name]}
        onClick=${() => toggle(name)}>${FILTERS[name]}${counts && alone && html` <span class="number">${whole(counts.traits[name] ?? 0)}</span>`}</button>`)}${
      counts && !counts.whole && html`<span class="quiet small">counting…</span>`}</div>
    <div class="bar start">
      <${SearchField} value=${query.text ?? ''} set=${(text) => set({ text })} />
      ${(others.length > 0 || query.with) && html`<label>Differs from <select value=${query.other ?? ''}
        onChange=${(e) => set({ other: e.target.value, field: '', with: '' })}><option value="">a cell…</option>${
        query.with && html`<option value=${query.other}>${brief(query.other, 50)}, of the other study</option>`}${
        others.map((c) => html`<option value=${c}>${brief(c, 50)}</option>`)}</select></label>`}
      ${!cell && [cellNames(overview), ...factorsOf(overview)].map((factor) => html`<${Factor} key=${factor.name} factor=${factor} query=${query} set=${set} overview=${overview} />`)}
      <${Among} label="Group" name="group" counts=${counts?.groups} numbers=${alone} query=${query} set=${set} />
      ${counts?.noted > 0 && html`<${Among} label="My notes" name="tag" counts=${{ '*': counts.noted, ...counts.tags }} numbers=${!filtered(query)} query=${query} set=${set} />`}
      ${query.field && html`<button type="button" class="toggle" aria-pressed="true" onClick=${() => set({ field: '' })}>${
        FIELD_NAMES[query.field] ?? query.field}</button>`}
      ${html`<label>Sort by <select value=${query.order ?? 'sample'} onChange=${(e) => set({ order: e.target.value })}>${
        Object.entries(ORDERS).map(([name, text]) => html`<option value=${name}>${text}</option>`)}${
        overview.metrics.map((name) => html`<option value=${`metric:${name}`}>${name}</option>`)}</select></label>
      <button type="button" class="toggle" aria-pressed=${String(query.descending === '1')}
        onClick=${() => set({ descending: query.descending === '1' ? '' : '1' })}>descending</button>`}
      ${filtered(query) && html`<button type="button" class="link"
        onClick=${() => replaceQuery({ metric: query.metric })}>clear all</button>`}
      ${query.other && html`<a href=${toContrast(study, cell, query.other, { with: query.with })}>four-fold table</a>`}
    </div></form>`;
}

const filtered = (query) => chosen(query).length > 0 || query.text || query.other || query.group || query.tag || query.cells;

// A choice among values, each with how many debates it would leave, if that is known.
function Among({ label, name, counts, numbers, query, set }) {
  const values = Object.entries(counts ?? {});
  if (!values.length && !query[name]) return null;
  return html`<label>${label} <select value=${query[name] ?? ''} onChange=${(e) => set({ [name]: e.target.value })}><option value="">all</option>${
    values.map(([value, n]) => html`<option value=${value}>${value === '*' ? 'any' : brief(value, 40) || '(none)'}${numbers ? ` (${whole(n)})` : ''}</option>`)}</select></label>`;
}

// The names of the cells, to choose one like a level.
const cellNames = ({ cells }) => ({ name: 'cell', levels: new Map(cells.map((c) => [c.cell, c.cell])), values: cells.map((c) => c.cell) });

// A choice among the levels of a factor, which leaves the cells that have it.
function Factor({ factor, query, set, overview }) {
  const within = query.cells ? JSON.parse(query.cells) : overview.cells.map((c) => c.cell);
  const levels = [...new Set(within.map((c) => factor.levels.get(c)))];
  const pick = (level) => {
    const others = factorsOf(overview).filter((f) => f.name !== factor.name && new Set(within.map((c) => f.levels.get(c))).size === 1);
    const fits = (c) => (!level || factor.levels.get(c) === level) && others.every((f) => f.levels.get(c) === f.levels.get(within[0]));
    const cells = overview.cells.map((c) => c.cell).filter(fits);
    set({ cells: cells.length < overview.cells.length ? JSON.stringify(cells) : '' });
  };
  return html`<label>${brief(factor.name.split('.').pop(), 30)} <select value=${levels.length === 1 ? levels[0] : ''} onChange=${(e) => pick(e.target.value)}>
    <option value="">all</option>${factor.values.map((v) => html`<option value=${v}>${brief(v, 40)}</option>`)}</select></label>`;
}

function SearchField({ value, set }) {
  const [text, setText] = useState(value);
  const timer = useRef(null);
  const changed = (event) => {
    const typed = event.target.value;
    setText(typed);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      timer.current = null;
      set(typed);
    }, 250);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => { if (!timer.current) setText(value); }, [value]);
  const label = data.searches === 'texts' ? 'Search in texts' : 'Search in questions and answers';
  return html`<label class="search"><span class="sr">${label}</span><input type="search" id="search" placeholder=${`${label} (/)`}
    value=${text} onInput=${changed} /></label>`;
}

const searchOf = (cell, query) => ({ cell, cells: query.cells ? JSON.parse(query.cells) : undefined, order: query.order,
  descending: query.descending === '1' ? 1 : undefined, traits: chosen(query), group: query.group, tag: query.tag, text: query.text,
  other: query.other || undefined, with: query.with, field: query.field, metric: query.metric });

// The rows so far. A search that finds little goes on by itself, a part of the cell at a time.
function useRows(study, cell, query) {
  const search = searchOf(cell, query);
  const asked = JSON.stringify([study, search]);
  const [state, setState] = useState({ rows: [], next: null, scanned: 0, busy: true, asked, search });
  const latest = useRef(asked);
  latest.current = asked;

  async function more(from, before, atLeast) {
    let { rows, scanned } = before;
    let next = from;
    const goal = rows.length + atLeast;
    do {
      const part = await data.page(study, { ...search, after: next ?? undefined });
      if (latest.current !== asked) return;
      rows = [...rows, ...part.rows];
      scanned += part.scanned;
      next = part.next;
      setState({ rows, next, scanned, busy: next !== null && rows.length < goal, asked, search });
    } while (next !== null && rows.length < goal);
  }

  const failed = (error) => latest.current === asked && setState((s) => ({ ...s, busy: false, error }));
  useEffect(() => {
    setState((s) => ({ ...s, busy: true, error: undefined }));
    more(null, { rows: [], scanned: 0 }, 50).catch(failed);
  }, [asked]);
  useFollowed(study, () => {
    if (state.rows.length <= 100) more(null, { rows: [], scanned: 0 }, 50).catch(failed);
  });
  return { ...state, fresh: state.asked === asked, more: () => {
    setState((s) => ({ ...s, busy: true }));
    more(state.next, state, 50).catch(failed);
  } };
}

function Rows({ study, query, found, cell, named }) {
  const total = cell.done + cell.failed + cell.running;
  const end = useRef(null);
  useEffect(() => {
    if (!end.current) return undefined;
    const watch = new IntersectionObserver(([entry]) => entry.isIntersecting && !found.busy && found.more(), { rootMargin: '400px' });
    watch.observe(end.current);
    return () => watch.disconnect();
  });
  return html`<section aria-label="Debates" aria-busy=${String(found.busy)}>
    <div class="bar"><p class="quiet small" role="status">${status(found, total, filtered(query))}</p><p class="quiet small hint"><kbd>j</kbd> <kbd>k</kbd> next and previous, <kbd>Enter</kbd> opens, <kbd>/</kbd> searches</p></div>
    ${found.error && html`<${Problem} error=${found.error} />`}
    <ol class=${`list${found.fresh ? '' : ' stale'}`}>${found.rows.map((row) => html`<${Row} key=${`${row.cell} ${row.repeat} ${row.sample}`} study=${study}
      row=${row} query=${query} repeats=${cell.repeats} named=${named} />`)}</ol>
    ${found.next !== null && html`<p ref=${end}><button type="button" class="button" onClick=${found.more} disabled=${found.busy}>Show more</button></p>`}
  </section>`;
}

function status({ rows, next, scanned, busy }, total, filtered) {
  if (busy && !rows.length) return filtered ? `Searching: ${whole(scanned)} of ${plural(total, 'debate')} looked at…` : 'Loading…';
  if (!filtered) return next === null ? plural(rows.length, 'debate') : `${whole(rows.length)} of ${plural(total, 'debate')}`;
  if (!rows.length) return 'No debate fits. Take a filter away, or clear all.';
  const all = next === null ? `${plural(rows.length, 'debate')} of ${whole(total)}` : `${plural(rows.length, 'debate')} so far`;
  return busy ? `${all}; ${whole(scanned)} looked at…` : all;
}

function Row({ study, row, query, repeats, named }) {
  const to = query.other ? toPair(study, row.cell, query.other, row, { with: query.with }) : toDebate(study, row);
  const metric = query.order?.startsWith('metric:') ? query.order.slice(7) : null;
  const answer = row.answer === null ? null : { key: row.answer, text: row.answer, nth: row.nth ?? 0, right: row.right };
  return html`<li><a class="row" href=${to}>
    <span class="what"><span class="quiet small">${named && `${brief(row.cell, 60)} · `}${brief(row.sample, 60)}${repeats > 1 ? ` · repeat ${row.repeat}` : ''}</span>
      <span class="question"><${Rich} text=${brief(row.question, 160)} inline=${true} /></span></span>
    <span class="how"><${Marks} marks=${row.marks} agents=${row.agents} /></span>
    <span class="end">${row.traits.includes('partial') && html`<span class="chip failed">partial</span> `}${row.state === 'failed' ? html`<span class="chip failed">failed</span>`
      : row.state === 'running' ? html`<span class="chip none">not ended</span>`
        : html`<${Chip} answer=${answer} name="undecided" />`}${row.reference && row.right !== true && html` <span class="quiet small reference-of">reference <bdi>${
          brief(row.reference, 24)}</bdi></span>`}</span>
    <span class="cost quiet small">${metric && html`<span>${brief(metric, 30)} ${score(row.metrics?.[metric])}</span>`}${row.changes ? html`<span>${plural(row.changes, 'change')} of mind</span>` : null}${
      row.tokens ? html`<span>${whole(row.tokens)} tokens</span>` : null}</span>${row.error && html`<span class="error quiet small">${brief(row.error, 200)}</span>`}${
    row.note && html`<span class="error small">${row.note.tags.map((tag) => html`<span class="badge tag">${brief(tag, 30)}</span> `)}${brief(row.note.text, 120)}</span>`}</a></li>`;
}

// j and k or the arrows go from row to row, / goes to the search.
function moveFocus(event) {
  if (event.key === '/') {
    document.getElementById('search')?.focus();
    return true;
  }
  const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
  if (!step) return false;
  const rows = [...document.querySelectorAll('a.row')];
  const at = rows.indexOf(document.activeElement);
  if (at < 0 && event.key.startsWith('Arrow')) return false;
  rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + step))]?.focus();
  return true;
}

