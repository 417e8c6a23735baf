// Cells as a grid: one factor in rows, one in columns, and in each field the mean of its cells.

import { brief, plural, rounded, score } from './format.js';
import { html } from './html.js';
import { told } from './parts.js';
import { replaceQuery, toCell } from './routes.js';

// What cells differ in: by its name, the level of each cell, in words. The budget that a cell is matched to is none of it. What all
// cells have comes first, so that the grid is of that.
export function factorsOf(found) {
  const factors = new Map();
  for (const { cell } of found.cells) {
    for (const [name, value] of Object.entries(found.levels[cell] ?? {})) {
      if (name.startsWith('match.')) continue;
      factors.set(name, (factors.get(name) ?? new Map()).set(cell, told(value)));
    }
  }
  return [...factors].map(([name, levels]) => ({ name, levels, values: inOrder([...new Set(levels.values())]) }))
    .filter(({ values }) => values.length > 1 && values.length <= 60).sort((a, b) => b.levels.size - a.levels.size);
}

// Numbers by size; anything else as the file has it.
const inOrder = (values) => (values.every((v) => v.trim() && Number.isFinite(Number(v))) ? values.sort((a, b) => a - b) : values);

export function Pivot({ study, found, query }) {
  const factors = factorsOf(found);
  if (factors.length < 2) return null;
  const named = (name, other) => factors.find((f) => f.name === name) ?? factors.find((f) => f.name !== other);
  const rows = named(query.rows);
  const columns = named(query.columns === rows.name ? undefined : query.columns, rows.name);
  const field = (row, column) => found.cells.filter(({ cell }) => rows.levels.get(cell) === row && columns.levels.get(cell) === column);
  const placed = found.cells.filter(({ cell }) => rows.levels.has(cell) && columns.levels.has(cell));
  const shown = ({ values, levels }) => values.filter((value) => placed.some(({ cell }) => levels.get(cell) === value));
  const means = placed.map((c) => c.score?.mean).filter((m) => m !== undefined);
  if (!found.cells.some((c) => c.score)) return null;
  const [low, high] = [Math.min(...means), Math.max(...means)];
  const select = (name, chosen) => html`<label>${name} <select value=${chosen.name} onChange=${(e) => replaceQuery({ ...query, [name]: e.target.value })}>${
    factors.map((f) => html`<option value=${f.name}>${brief(f.name, 50)}</option>`)}</select></label>`;
  const table = html`<div class="wide" role="region" aria-label="Cells as a grid" tabindex="0"><table class="pivot">
    <thead><tr><td></td>${shown(columns).map((v) => html`<th scope="col">${brief(v, 40)}</th>`)}</tr></thead>
    <tbody>${shown(rows).map((row) => html`<tr><th scope="row">${brief(row, 60)}</th>${shown(columns).map((column) => html`<${Field}
      study=${study} cells=${field(row, column)} low=${low} high=${high} />`)}</tr>`)}</tbody></table></div>
    <p class="quiet small">Means of ${found.metric}; the stronger the colour, the higher, from ${score(low)} to ${score(high)}. A field of several cells has the mean of their means.${
      placed.length < found.cells.length && ` Not shown: ${plural(found.cells.length - placed.length, 'cell')} without one of the two settings.`}</p>`;
  return html`<section><div class="bar"><h2>Cells as a grid</h2><div class="bar start">${select('rows', rows)}${select('columns', columns)}</div></div>
    ${means.length ? table : html`<p class="quiet small">No cell with a score has both of these settings.</p>`}</section>`;
}

function Field({ study, cells, low, high }) {
  const means = cells.map((c) => c.score?.mean).filter((m) => m !== undefined);
  if (!means.length) return html`<td class="quiet">–</td>`;
  const mean = means.reduce((a, b) => a + b, 0) / means.length;
  const range = cells.length === 1 && cells[0].score.ci95;
  const to = cells.length === 1 ? toCell(study, cells[0].cell) : toCell(study, '', { cells: JSON.stringify(cells.map((c) => c.cell)) });
  return html`<td style=${{ '--share': `${5 + 35 * (high > low ? (mean - low) / (high - low) : 0)}%` }}><a href=${to}>${score(mean)}</a><span class="quiet small block">${
    range ? `[${range.map((x) => rounded(x, 2)).join(', ')}]` : cells.length > 1 ? `${cells.length} cells` : ''}</span></td>`;
}
