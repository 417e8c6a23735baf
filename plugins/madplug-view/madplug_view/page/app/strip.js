// The answers of a debate by round, and how many agents stand by each of them.

import { brief, plural } from './format.js';
import { html } from './html.js';
import { Grade } from './parts.js';
import { standing } from './replay.js';

export function Strip({ debate, moment, answers, jump }) {
  const rows = debate.rounds.filter((r) => r.marks.length);
  if (!rows.length) return null;
  const said = new Set(debate.messages.slice(0, moment).map((m) => m.id));
  return html`<section class="strip" aria-labelledby="by-round"><h2 id="by-round">Answers by round</h2>
    <div class="wide" role="region" aria-label="Answers by round" tabindex="0"><table>
    <thead><tr><td></td>${rows.map((r) => html`<th scope="col" key=${r.number}>${r.number}</th>`)}</tr></thead>
    <tbody>${debate.agents.map((agent, i) => html`<tr key=${agent.id}><th scope="row">${brief(agent.name, 26)}${
      !agent.votes && html`<span class="quiet small"> no vote</span>`}</th>${rows.map((r) => html`<td key=${r.number}><${Cell}
        mark=${r.marks[i]} debate=${debate} said=${said} answers=${answers} jump=${jump} /></td>`)}</tr>`)}</tbody>
    <tfoot><tr><th scope="row">agents with<br />each answer</th>${rows.map((r) => html`<td key=${r.number}><${Votes} debate=${debate} round=${r} said=${said}
      answers=${answers} /></td>`)}</tr></tfoot></table></div>
    ${rows.some((r) => r.earlier.length) && html`<p class="quiet small">Where a reply could not be read (?), the bars show the agent’s answer before; what the decision counts is its own matter.</p>`}</section>`;
}

// The last of an agent's messages in a round that has been said.
function Cell({ mark, debate, said, answers, jump }) {
  const messages = debate.messages.filter((m) => m.agent === mark.agent && m.round === mark.round && !m.retracted && said.has(m.id));
  if (!messages.length) return null;
  const m = [...messages].reverse().find((n) => n.key !== null) ?? messages[messages.length - 1];
  const answer = m.key === null ? null : answers.get(m.key);
  const changed = messages.some((n) => n.changed);
  return html`<button type="button" class=${`mini ${answer ? `a${answer.nth % 8}` : 'none'}${changed ? ' turned' : ''}`}
    onClick=${() => jump(m.id)} title=${`${answer ? brief(answer.text, 80) : 'no answer'}${changed ? ': changed its mind' : ''}`}><bdi>${
      answer ? brief(answer.key, 9) : mark.state === 'none' ? '–' : '?'}</bdi>${answer && html`<${Grade} right=${answer.right} />`}${
      changed && html`<span class="sr"> changed</span>`}</button>`;
}

// How many agents gave each answer last, as a stack of bars, the largest at the bottom, each with its number.
function Votes({ debate, round, said, answers }) {
  const ids = round.messages.filter((id) => said.has(id));
  if (!ids.length) return null;
  const until = debate.messages.findIndex((m) => m.id === ids[ids.length - 1]) + 1;
  const counts = new Map();
  for (const key of standing(debate, until).values()) counts.set(key, (counts.get(key) ?? 0) + 1);
  const sorted = [...counts].sort((a, b) => a[1] - b[1]);
  return html`<div class="votes">${sorted.map(([key, n]) => {
    const answer = answers.get(key);
    return html`<span key=${key} class=${`vote a${answer.nth % 8}`} style=${{ '--n': n }} title=${`${brief(answer.key, 60)}: ${plural(n, 'agent')}`}>${n}</span>`;
  })}</div>`;
}
