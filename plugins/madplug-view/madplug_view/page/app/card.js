// A message on the page of a debate.

import { useContext, useEffect, useMemo, useState } from '../vendor/hooks/index.js';
import { data } from './data.js';
import { brief, duration, listed, plural, visible, whole } from './format.js';
import { html } from './html.js';
import { Chip, Term, Text } from './parts.js';
import { Reading, Rich } from './rich.js';

const LONG = 600; // characters of a text that is folded
const LINES = 14;
const ENDS = 400; // characters of its beginning and of its end

export function Card({ study, debate, message: m, answers, state, show, open }) {
  const answer = m.key === null ? null : answers.get(m.key);
  const agent = debate.agents.find((a) => a.id === m.agent);
  const classes = ['card', state, m.retracted && 'retracted', m.changed && 'changed', m.agent === null && 'note'].filter(Boolean).join(' ');
  const who = m.agent === null ? 'Note' : brief(agent?.name ?? '?', 60);
  return html`<article class=${classes} id=${`m${m.id}`} data-id=${m.id} tabindex="-1" aria-hidden=${state === 'later' ? 'true' : undefined}
    onMouseEnter=${() => show(m.id)} onMouseLeave=${() => show(null)} onFocusIn=${() => show(m.id)} onFocusOut=${() => show(null)}>
    <header><span class="who">${who}</span><span class="move quiet small">${m.agent === null ? '' : brief(m.move, 30)}${
      m.stage ? ` · ${brief(m.stage, 30)}` : ''}</span>
      ${(answer || (m.agent !== null && m.answer !== '')) && html`<${answer ? Chip : Unread} answer=${answer} />`}</header>
    <${Badges} debate=${debate} message=${m} />
    <${Body} study=${study} debate=${debate} message=${m} />
    <${Received} debate=${debate} message=${m} />
    ${m.data && html`<details><summary>data of plugins</summary><${Text} text=${m.data} /></details>`}
    ${(m.calls.length > 0 || m.seen.length > 0) && html`<footer><span class="quiet small">${spent(m, agent)}</span>
      <button type="button" class="link" onClick=${() => open(m.id)} tabindex=${state === 'later' ? -1 : 0}>${
        m.calls.length ? 'prompt and reply' : 'what it was shown'}</button></footer>`}</article>`;
}

// A text in which the study's answer format found no answer.
const Unread = () => html`<span class="chip none"><${Term} means="The study's answer format found no answer in this text.">unread<//></span>`;

function Badges({ debate, message: m }) {
  const badges = [];
  const names = (ids) => listed([...new Set(ids.map((i) => debate.messages.find((n) => n.id === i)?.agent))].map(
    (id) => brief(debate.agents.find((a) => a.id === id)?.name ?? 'a note', 30)));
  if (m.changed) badges.push(['turned', 'changed its mind']);
  if (m.retracted) badges.push(['warn', 'retracted: taken back, and shown to no one since']);
  if (m.altered_for.length) badges.push(['warn', `altered on the way to ${names(m.altered_for)}`]);
  if (m.altered.length) badges.push(['warn', `was shown ${plural(m.altered.length, 'altered message')}`]);
  if (m.confidence !== null) badges.push(['', `confidence ${Math.round(m.confidence * 100)}%`]);
  if (m.agreement !== null) badges.push(['', m.agreement ? 'agrees' : 'disagrees']);
  return badges.length ? html`<p class="badges">${badges.map(([kind, text]) => html`<span class=${`badge ${kind}`}>${text}</span>`)}</p>` : null;
}

// The text; of a long one the beginning and the end. What the server has cut is fetched part by part.
function Body({ study, debate, message: m }) {
  const { expanded } = useContext(Reading);
  const [unfolded, setUnfolded] = useState(expanded);
  const [more, setMore] = useState('');
  const [error, setError] = useState(null);
  useEffect(() => setUnfolded(expanded), [expanded]);
  const text = m.content + more;
  const left = m.length - text.length;
  const parts = useMemo(() => ends(m.content.trim(), m.end), [m]);
  const fetchMore = () => data.text(study, { cell: debate.cell, repeat: debate.repeat, sample: debate.sample.id }, m.id, text.length).then(
    (part) => setMore(more + part.text), setError);
  if (!text.trim()) return html`<p class="quiet small">(nothing was written)</p>`;
  const rich = (part) => html`<${Rich} text=${part} marks=${debate.marks} />`;
  if (!parts) return rich(text.trim());
  const toggle = html`<button type="button" class="link" aria-expanded=${String(unfolded)} onClick=${() => setUnfolded(!unfolded)}>${
    unfolded ? 'less' : 'all of it'}</button>`;
  if (!unfolded) {
    return html`<div class="folded">${rich(parts.head)}</div><p class="gap">${toggle} <span class="quiet small">${
      plural(m.length, 'character')}</span></p><div class="folded end">${rich(parts.tail)}</div>`;
  }
  return html`${rich(text.trim())}${toggle}
    ${left > 0 && html` <button type="button" class="link" onClick=${fetchMore}>more: ${whole(left)} characters are left</button>`}
    ${error && html`<p class="problem">${visible(error.message)}</p>`}`;
}

// The beginning and the end of a long text, cut between lines where there are some; null for a short one.
function ends(text, end) {
  if (text.length <= LONG && text.split('\n').length <= LINES) return null;
  const last = end || text;
  const from = last.length - Math.min(ENDS, Math.floor(text.length / 3));
  const to = text.lastIndexOf('\n', Math.min(ENDS, Math.floor(text.length / 2)));
  const head = text.slice(0, to > 0 ? to : Math.min(ENDS, Math.floor(text.length / 2))).trimEnd();
  const line = last.indexOf('\n', from);
  const tail = last.slice(line >= 0 && line < last.length - 20 ? line : from).trim();
  return { head, tail };
}

// What an agent was shown instead of what was said.
function Received({ debate, message: m }) {
  const found = Object.entries(m.received);
  if (!found.length) return null;
  const name = (id) => {
    const said = debate.messages.find((n) => n.id === Number(id));
    return brief(debate.agents.find((a) => a.id === said?.agent)?.name ?? 'a note', 30);
  };
  return html`<details class="received"><summary>what reached it was changed</summary>${found.map(([id, text]) => html`
    <p class="quiet small">from ${name(id)}, it read:</p><${Text} text=${text} />`)}</details>`;
}

function spent(m, agent) {
  const facts = [];
  if (m.model && m.model !== agent?.model) facts.push(brief(m.model, 24));
  if (m.spent?.calls) {
    facts.push(`${whole(m.spent.prompt)} + ${whole(m.spent.completion)} tokens`, duration(m.spent.seconds));
    if (m.spent.retries) facts.push(plural(m.spent.retries, 'failed attempt'));
  }
  return facts.join(' · ');
}
