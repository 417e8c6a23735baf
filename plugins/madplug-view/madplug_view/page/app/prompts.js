// What was really sent to the model behind a message, and what came back.

import { useEffect, useRef } from '../vendor/hooks/index.js';
import { data } from './data.js';
import { brief, duration, money, plural, visible, whole } from './format.js';
import { html } from './html.js';
import { Chip, Problem, Text, useAnswer } from './parts.js';

const OPEN = 3; // so many calls are shown in full at once

// The calls behind a message, or behind none: `{message}` or `{title, keys}`.
export function PromptDialog({ study, debate, asked, answers, close }) {
  const box = useRef(null);
  const { message } = asked;
  const keys = message ? message.calls : asked.keys;
  const id = { cell: debate.cell, repeat: debate.repeat, sample: debate.sample.id };
  const { value: calls, error } = useAnswer(() => data.calls(study, keys, id), [keys.join()]);
  useEffect(() => {
    box.current.showModal();
    return () => box.current?.close();
  }, []);
  const quotes = message ? quotesOf(debate, message) : [];
  return html`<dialog ref=${box} class="prompts" aria-labelledby="prompt-title" onClose=${close}
    onClick=${(e) => e.target === box.current && box.current.close()}><div class="inside">
    <header class="bar"><h2 id="prompt-title">${message ? title(debate, message) : asked.title}</h2><button type="button" class="button" onClick=${() => box.current.close()}>Close</button></header>
    ${error && html`<${Problem} error=${error} />`}
    ${!calls && !error && html`<p class="quiet">Loading…</p>`}
    ${calls && calls.map((call) => (message && calls.length <= OPEN ? html`<${Call} key=${call.key} call=${call} many=${calls.length > 1} quotes=${quotes} answers=${answers} />`
      : html`<${Folded} key=${call.key} debate=${debate} call=${call} open=${calls.length <= OPEN} quotes=${quotes} answers=${answers} />`))}
    ${calls && !calls.length && html`<p class="quiet">${keys.length ? 'These calls are not on record; the study that this one reuses or decides may have them.'
      : 'No model was called for this message, so there is no prompt: it was read from a record, or written by a rule. Below is what the agent was shown.'}</p>`}
    ${message && calls && html`<${Shown} debate=${debate} message=${message} answers=${answers} folded=${calls.length > 0} />`}
    ${message && message.data && html`<details><summary>noted by plugins</summary><${Text} text=${message.data} /></details>`}
  </div></dialog>`;
}

const title = (debate, m) => `${m.agent === null ? 'Note' : brief(debate.agents.find((a) => a.id === m.agent)?.name ?? '?', 60)}, ${
  m.round ? `round ${m.round}` : 'before round 1'}`;

// What an agent was shown, as it was shown, to be found again in its prompt; short texts would be found anywhere.
function quotesOf(debate, message) {
  return message.seen.map((id) => debate.messages.find((m) => m.id === id)).filter(Boolean).map((m) => ({
    message: m, title: title(debate, m), text: (message.received[String(m.id)] ?? m.content).trim() })).filter((q) => q.text.length >= 12);
}

// One of many calls, behind a line that says who was asked for what, and how the reply begins.
function Folded({ debate, call, open, quotes, answers }) {
  const agent = debate.agents.find((a) => a.id === call.agent);
  const where = [agent && brief(agent.name, 40), call.round ? `round ${call.round}` : 'before round 1'].filter(Boolean).join(', ');
  return html`<details class="one" open=${open}><summary><b>${brief(call.purpose, 30)}</b> · ${where}<span class="quiet reply-start"> ${
    brief(call.reply, 90)}</span></summary><${Call} call=${call} many=${false} quotes=${quotes} answers=${answers} /></details>`;
}

function Call({ call, many, quotes, answers }) {
  const facts = [`${whole(call.prompt)} + ${whole(call.completion)} tokens`, duration(call.seconds)];
  if (call.cost_usd) facts.push(money(call.cost_usd));
  if (call.retries) facts.push(`after ${plural(call.retries, 'failed attempt')}`);
  const params = Object.entries(call.params).map(([k, v]) => `${k} ${typeof v === 'object' ? JSON.stringify(v) : v}`);
  return html`<section class="call"><p class="quiet small">${many ? `${brief(call.purpose, 30)}: ` : ''}sent to <b>${brief(String(call.model), 60)}</b> · ${
    [...facts, ...params].map((f) => brief(String(f), 120)).join(' · ')}</p>
    ${call.messages.map((m, i) => html`<div key=${i} class=${`sent ${['system', 'user', 'assistant'].includes(m.role) ? m.role : ''}`}>
      <h3>${brief(m.role, 20)}</h3><${Sent} text=${m.text} quotes=${quotes} answers=${answers} /></div>`)}
    <div class="sent reply"><h3>reply</h3><${Text} text=${call.reply} /></div></section>`;
}

// A text that was sent; where it quotes a message that the agent was shown, that is marked, with whose it is.
function Sent({ text, quotes, answers }) {
  const found = quotes.map((q) => ({ ...q, at: text.indexOf(q.text) })).filter((q) => q.at >= 0).sort((a, b) => a.at - b.at);
  if (!found.length) return html`<${Text} text=${text} />`;
  const parts = [];
  let from = 0;
  for (const q of found) {
    if (q.at < from) continue;
    parts.push(visible(text.slice(from, q.at)).replace(/\n$/, ''), html`<span class="quote"><span class="whose">${q.title} ${
      q.message.key !== null && html`<${Chip} answer=${answers.get(q.message.key)} />`}</span>${visible(q.text)}</span>`);
    from = q.at + q.text.length;
  }
  return html`<div class="text" dir="auto">${parts}${visible(text.slice(from)).replace(/^\n/, '')}</div>`;
}

// The messages an agent was shown, in that order; folded where the prompt has them.
function Shown({ debate, message, answers, folded }) {
  if (!message.seen.length) return html`<p class="quiet">It was shown no message.</p>`;
  return html`<details open=${!folded}><summary>the ${plural(message.seen.length, 'message')} it was shown</summary><ol class="plain">${message.seen.map((id) => {
    const m = debate.messages.find((n) => n.id === id);
    if (!m) return null;
    const received = message.received[String(id)];
    return html`<li key=${id} class="sent"><p class="bar start"><b>${title(debate, m)}</b>${m.key !== null && html`<${Chip} answer=${answers.get(m.key)} />`}${
      message.altered.includes(id) && html`<span class="badge warn">altered</span>`}</p>
      ${received !== undefined && html`<p class="quiet small">as it arrived:</p><${Text} text=${received} /><p class="quiet small">as it was said:</p>`}
      <${Text} text=${m.content} /></li>`;
  })}</ol></details>`;
}
