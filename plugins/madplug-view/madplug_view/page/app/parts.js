// Small parts that several pages are made of.

import { useEffect, useLayoutEffect, useState } from '../vendor/hooks/index.js';
import { data } from './data.js';
import { brief, listed, visible } from './format.js';
import { html } from './html.js';

// Right, wrong, or nothing: a sign that does not depend on its colour, with a word for those who hear the page.
export function Grade({ right, word = false }) {
  if (right === null || right === undefined) return null;
  const name = right ? 'right' : 'wrong';
  return html`<span class=${`grade ${name}`}><span aria-hidden="true">${right ? '✓' : '✗'}</span>${
    word ? ` ${name}` : html`<span class="sr"> (${name})</span>`}</span>`;
}

// Results of components that could read the references are marked wherever they are shown.
export function Oracle({ of }) {
  return of.oracle ? html`<p class="problem">oracle = true: components saw the references, so these results are not about models.</p>` : null;
}

// An answer: the same colour wherever it appears in a debate.
export function Chip({ answer, big = false, name }) {
  if (!answer) return html`<span class="chip none">${name ?? 'no answer'}</span>`;
  return html`<span class=${`chip a${answer.nth % 8}${big ? ' big' : ''}`} title=${brief(answer.text, 300)}><bdi>${
    brief(answer.key, big ? 120 : 24)}</bdi><${Grade} right=${answer.right} /></span>`;
}

// A text of a model, exactly as it was written, and nothing but text.
export function Text({ text, label }) {
  return html`<div class="text" dir="auto" aria-label=${label}>${visible(text)}</div>`;
}

const MARKS = {
  r: 'right', w: 'wrong', a: 'answered', u: 'no readable answer', n: 'not asked for an answer', s: 'silent',
};

// The answers of a debate as one small picture: a group per round, a mark per agent.
export function Marks({ marks, agents }) {
  if (!marks.length) return html`<span class="quiet">–</span>`;
  const step = 11;
  const groups = marks.map(([codes, places], round) => {
    const shapes = [...codes].map((code, i) => mark(code, places[i], i * step));
    return html`<svg key=${round} class="marks" width=${codes.length * step} height="14" aria-hidden="true">${shapes}</svg>`;
  });
  return html`<span class="rounds">${groups}<span class="sr">${described(marks, agents)}</span></span>`;
}

function mark(code, place, x) {
  const kind = code.toLowerCase();
  const changed = code !== kind && html`<path class="changed" d=${`M${x + 0.5} 12.5h8`} />`;
  const box = `M${x + 0.5} 0.5h8v8h-8z`;
  const shapes = {
    r: html`<path class="mr" d=${box} />`,
    w: html`<path class="mw" d=${`${box}M${x + 2.5} 2.5l4 4m0-4l-4 4`} />`,
    a: html`<path class=${`ma a${parseInt(place, 36) % 8}`} d=${box} />`,
    u: html`<path class="mu" d=${box} />`,
    n: html`<path class="mn" d=${`M${x + 2} 4.5h5`} />`,
    s: null,
  };
  return [shapes[kind], changed];
}

function described(marks, agents) {
  return marks.map(([codes], round) => `round ${round + 1}: ${[...codes].map((code, i) => `${agents[i] ?? `agent ${i + 1}`} ${
    MARKS[code.toLowerCase()]}${code !== code.toLowerCase() ? ', changed' : ''}`).join('; ')}`).join('. ');
}

export function Legend() {
  const row = (code, text) => html`<span class="key"><svg class="marks" width="11" height="14" aria-hidden="true">${
    mark(code, '0', 0)}</svg> ${text}</span>`;
  return html`<p class="legend">${row('r', 'right')}${row('w', 'wrong')}${row('a', 'not graded')}${
    row('u', 'unreadable: no answer was found in the text')}${row('n', 'no answer asked for')}${row('R', 'changed its mind')}
    <span class="quiet">one group per round, one mark per agent</span></p>`;
}

// A mean with its interval, on a scale from `low` to `high`.
export function Interval({ score: found, low = 0, high = 1 }) {
  if (!found) return null;
  const x = (value) => 4 + 152 * Math.min(1, Math.max(0, (value - low) / (high - low || 1)));
  const [a, b] = found.ci95 ?? [found.mean, found.mean];
  return html`<svg class="interval" viewBox="0 0 160 18" width="160" height="18" aria-hidden="true">
    <path class="scale" d="M4 13.5h152M4 10.5v6M42 12v3M80 10.5v6M118 12v3M156 10.5v6" />
    <path class="range" d=${`M${x(a)} 7H${x(b)}`} /><circle class="mean" cx=${x(found.mean)} cy="7" r="4" /></svg>`;
}

// The way back: links to what contains this page.
// asked: the name of the study whose question is shown, for pages that have it, too.
export function Crumbs({ links, asked }) {
  const { value: pages } = useAnswer(() => data.pages(), []);
  return html`<nav class="crumbs" aria-label="Where this is"><a class="home" href="#/">madplug</a>${links.map(
    ([name, to]) => html`<span aria-hidden="true">›</span><a href=${to}>${brief(name, 60)}</a>`)}<span class="others">${Object.entries(pages ?? {}).map(
    ([name, to]) => html`<a href=${asked ? `${to}#/${encodeURIComponent(asked)}` : to}>${name}${asked ? ': this question' : ''}</a>`)}</span></nav>`;
}

export function Problem({ error }) {
  return html`<p class="problem" role="alert">${visible(error.message ?? error)}</p>`;
}

// What a promise gives: {value, error, loading}; asked again when `on` changes, the old value stays meanwhile.
export function useAnswer(ask, on) {
  const [state, setState] = useState({ loading: true });
  useEffect(() => {
    let wanted = true;
    setState((before) => ({ ...before, loading: true }));
    ask().then((value) => wanted && setState({ value, loading: false }),
      (error) => wanted && setState({ error, loading: false }));
    return () => { wanted = false; };
  }, on);
  return state;
}

// A long name, such as a sample's path or a cell of a sweep, breaks after slashes and commas before it does elsewhere.
export const breakable = (name) => name.split(/(?<=[,/])/).map((part, i) => (i ? html`<wbr />${part}` : part));

// The title of the window, and of the page for those who move by headings.
export function Title({ children, window: name }) {
  useEffect(() => { document.title = `${name} – madplug`; }, [name]);
  return html`<h1 tabindex="-1">${[children].flat().map((child) => (typeof child === 'string' ? breakable(child) : child))}</h1>`;
}

export const namesOf = (debate, ids) => listed(ids.map((id) => brief(debate.agents.find((a) => a.id === id)?.name ?? '?', 40)));

// Keys that work anywhere on a page, unless the reader is typing.
export function useKeys(handle, on) {
  useLayoutEffect(() => {
    const pressed = (event) => {
      const typing = event.target.closest?.('input:not([type=range]), select, textarea, dialog[open]');
      if (!typing && !event.ctrlKey && !event.metaKey && !event.altKey && handle(event) === true) event.preventDefault();
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, on);
}

// A setting in words: a component by its name, with its options in brackets; a file without its folders.
export function told(value) {
  if (typeof value === 'string') return value.startsWith('/') ? value.split('/').pop() : value;
  if (Array.isArray(value)) return value.map(told).join(', ');
  if (!value?.use) return JSON.stringify(value);
  const { use, ...options } = value;
  const words = Object.entries(options).map(([k, v]) => `${k}=${told(v)}`).join(', ');
  return words ? `${use} (${words})` : use;
}

// Rows in the order of what `by` gives of each; without it, as they are.
export function sortedBy(rows, by, descending) {
  if (!by) return rows;
  const way = descending === '1' ? -1 : 1;
  const compare = (a, b) => (typeof a === 'string' ? a.localeCompare(b, 'en', { numeric: true }) : a - b);
  return [...rows].sort((a, b) => way * compare(by(a), by(b)));
}

// A column's heading: pressed, it sorts; pressed again, the other way round; a third time, no more.
export function Heading({ name, text, query, set, n, colspan, first }) {
  const way = query.order === name ? query.descending ?? '' : null;
  const next = way === null ? { order: name, descending: first } : way === first ? { order: name, descending: first ? '' : '1' } : { order: '', descending: '' };
  return html`<th scope="col" class=${n ? 'n' : ''} colspan=${colspan} aria-sort=${way === null ? undefined : way ? 'descending' : 'ascending'}>
    <button type="button" class="sort" onClick=${() => set(next)} title=${`sort by ${text}`}>${text}<span aria-hidden="true" class="way">${
      way === null ? '' : way ? ' ▼' : ' ▲'}</span></button></th>`;
}

// A word that says what it means when it is pressed.
export function Term({ children, means }) {
  return html`<details class="term"><summary>${children}</summary><span>${means}</span></details>`;
}
