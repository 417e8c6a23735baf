// A picture that a plugin noted as data: lines, bars, a table, or shaded cells. Everything in it is text or a number.

import { brief, score } from './format.js';
import { html } from './html.js';

const WIDE = 560;
const HIGH = 200;
const LEFT = 46;
const BELOW = 34;

export function Picture({ picture }) {
  const Drawn = { line: Lines, bars: Bars, heat: Heat, table: Table }[picture.kind];
  return html`<figure class="picture"><figcaption><b>${brief(picture.title, 200)}</b>${picture.caption && html` <span class="quiet">${
    brief(picture.caption, 400)}</span>`} <span class="quiet small">${brief(picture.plugin, 60)}</span></figcaption><${Drawn} picture=${picture} /></figure>`;
}

const number = (value) => (Number.isInteger(value) ? value.toLocaleString('en') : score(value));
const numeric = (value) => (typeof value === 'number' ? value : null);
const distinct = (rows, column) => [...new Set(rows.map((r) => String(r[column] ?? '')))];

function groups({ rows, series }) {
  const found = new Map();
  for (const row of rows) {
    const name = series ? String(row[series] ?? '') : '';
    found.set(name, [...(found.get(name) ?? []), row]);
  }
  return [...found].slice(0, 8);
}

// From the numbers of a column to places on the page. least: a number that is always on the scale.
function scale(values, from, to, ...least) {
  const known = [...values.filter((v) => v !== null), ...least];
  const [low, high] = known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
  const at = (v) => from + ((v - low) / (high - low || 1)) * (to - from);
  return { at, low, high };
}

function Frame({ picture, y, children }) {
  const names = groups(picture).map(([name]) => name).filter(Boolean);
  return html`<div class="wide"><svg viewBox=${`0 0 ${WIDE} ${HIGH + BELOW}`} role="img" aria-label=${brief(picture.title, 200)}>
    ${[y.low, y.high].map((v) => html`<text x=${LEFT - 6} y=${y.at(v) + 4} text-anchor="end">${number(v)}</text>
      <line x1=${LEFT} x2=${WIDE} y1=${y.at(v)} y2=${y.at(v)} class="grid" />`)}${children}
    <text x=${(LEFT + WIDE) / 2} y=${HIGH + BELOW - 2} text-anchor="middle">${brief(picture.x, 40)}</text></svg>
    ${names.length > 0 && html`<p class="small">${names.map((name, i) => html`<span class=${`key a${i}`}>${brief(name, 30)}</span> `)}</p>`}</div>`;
}

function Lines({ picture }) {
  const x = scale(picture.rows.map((r) => numeric(r[picture.x])), LEFT, WIDE - 8);
  const y = scale(picture.rows.map((r) => numeric(r[picture.y])), HIGH - 4, 8, 0);
  return html`<${Frame} picture=${picture} y=${y}>${groups(picture).map(([, rows], i) => {
    const points = rows.filter((r) => numeric(r[picture.x]) !== null && numeric(r[picture.y]) !== null).map((r) => [x.at(r[picture.x]), y.at(r[picture.y])]);
    return html`<g class=${`a${i}`}><polyline points=${points.map((p) => p.join(',')).join(' ')} />${points.map(([px, py]) => html`<circle cx=${px} cy=${py} r="3" />`)}</g>`;
  })}${[x.low, x.high].map((v) => html`<text x=${x.at(v)} y=${HIGH + 14} text-anchor=${v === x.high ? 'end' : 'start'}>${number(v)}</text>`)}<//>`;
}

function Bars({ picture }) {
  const places = distinct(picture.rows, picture.x);
  const series = groups(picture);
  const y = scale(picture.rows.map((r) => numeric(r[picture.y])), HIGH - 4, 8, 0);
  const step = (WIDE - LEFT) / Math.max(1, places.length);
  const wide = (0.8 * step) / Math.max(1, series.length);
  return html`<${Frame} picture=${picture} y=${y}>${series.map(([, rows], i) => html`<g class=${`a${i}`}>${rows.map((r) => {
    const value = numeric(r[picture.y]) ?? 0;
    const left = LEFT + (places.indexOf(String(r[picture.x] ?? '')) + 0.1) * step + i * wide;
    return html`<rect x=${left} width=${wide} y=${Math.min(y.at(value), y.at(0))} height=${Math.abs(y.at(value) - y.at(0))}><title>${
      `${brief(String(r[picture.x] ?? ''), 60)}: ${number(value)}`}</title></rect>`;
  })}</g>`)}${places.map((p, i) => html`<text x=${LEFT + (i + 0.5) * step} y=${HIGH + 12} text-anchor="middle">${brief(p, Math.max(3, Math.floor(step / 7)))}</text>`)}<//>`;
}

function Heat({ picture }) {
  const [across, down] = [distinct(picture.rows, picture.x), distinct(picture.rows, picture.y)];
  const values = new Map(picture.rows.map((r) => [`${r[picture.x] ?? ''}\n${r[picture.y] ?? ''}`, numeric(r[picture.series])]));
  const { at } = scale([...values.values()], 0, 85, 0);
  return html`<div class="wide"><table class="heat"><thead><tr><td></td>${across.map((a) => html`<th scope="col">${brief(a, 20)}</th>`)}</tr></thead>
    <tbody>${down.map((d) => html`<tr><th scope="row">${brief(d, 30)}</th>${across.map((a) => {
    const value = values.get(`${a}\n${d}`) ?? null;
    return html`<td style=${value === null ? {} : { '--share': `${at(value)}%` }}>${value === null ? '' : number(value)}</td>`;
  })}</tr>`)}</tbody></table></div>`;
}

function Table({ picture }) {
  const columns = [...new Set(picture.rows.flatMap((r) => Object.keys(r)))].slice(0, 12);
  return html`<div class="wide"><table><thead><tr>${columns.map((c) => html`<th scope="col">${brief(c, 40)}</th>`)}</tr></thead>
    <tbody>${picture.rows.slice(0, 200).map((r) => html`<tr>${columns.map((c) => html`<td>${typeof r[c] === 'number' ? number(r[c]) : brief(String(r[c] ?? ''), 200)}</td>`)}</tr>`)}</tbody></table></div>`;
}
