// What was really sent to the model behind a message, and what came back.

import { useEffect, useRef } from '../vendor/hooks/index.js';
import { data } from './data.js';
import { brief, duration, money, whole } from './format.js';
import { html } from './html.js';
import { Chip, Problem, Text, useAnswer } from './parts.js';

export function PromptDialog({ study, debate, message, answers, close }) {
  const box = useRef(null);
  const keys = message === 'opening' ? debate.opening_calls : message.calls;
  const id = { cell: debate.cell, repeat: debate.repeat, sample: debate.sample.id };
  const { value: calls, error } = useAnswer(() => data.calls(study, keys, id), [keys.join()]);
  useEffect(() => {
    box.current.showModal();
    return () => box.current?.close();
  }, []);
  const name = message === 'opening' ? 'Before round 1' : title(debate, message);
  return html`<dialog ref=${box} class="prompts" aria-labelledby="prompt-title" onClose=${close}
    onClick=${(e) => e.target === box.current && box.current.close()}><div class="inside">
    <header class="bar"><h2 id="prompt-title">${name}</h2><button type="button" class="button" onClick=${() => box.current.close()}>Close</button></header>
    ${error && html`<${Problem} error=${error} />`}
    ${!calls && !error && html`<p class="quiet">Loading…</p>`}
    ${calls && calls.map((call) => html`<${Call} key=${call.key} call=${call} many=${calls.length > 1} />`)}
    ${calls && !calls.length && html`<p class="quiet">${keys.length ? 'The calls behind this message are not on record.'
      : 'No model was called for this message, so there is no prompt: it was read from a record, or written by a rule. Below is what the agent was shown.'}</p>`}
    ${message !== 'opening' && html`<${Shown} debate=${debate} message=${message} answers=${answers} />`}
    ${message !== 'opening' && message.data && html`<details><summary>noted by plugins</summary><${Text} text=${message.data} /></details>`}
  </div></dialog>`;
}

const title = (debate, m) => `${m.agent === null ? 'Note' : brief(debate.agents.find((a) => a.id === m.agent)?.name ?? '?', 60)}, ${
  m.round ? `round ${m.round}` : 'before round 1'}`;

function Call({ call, many }) {
  const facts = [`${whole(call.prompt)} + ${whole(call.completion)} tokens`, duration(call.seconds)];
  if (call.cost_usd) facts.push(money(call.cost_usd));
  if (call.retries) facts.push(`${call.retries} failed attempts before`);
  const params = Object.entries(call.params).map(([k, v]) => `${k} ${typeof v === 'object' ? JSON.stringify(v) : v}`);
  return html`<section class="call"><p class="quiet small">${many ? `${brief(call.purpose, 30)}: ` : ''}sent to <b>${brief(String(call.model), 60)}</b> · ${
    [...facts, ...params].map((f) => brief(String(f), 120)).join(' · ')}</p>
    ${call.messages.map((m, i) => html`<div key=${i} class=${`sent ${['system', 'user', 'assistant'].includes(m.role) ? m.role : ''}`}>
      <h3>${brief(m.role, 20)}</h3><${Text} text=${m.text} /></div>`)}
    <div class="sent reply"><h3>reply</h3><${Text} text=${call.reply} /></div></section>`;
}

// The messages an agent was shown, in that order.
function Shown({ debate, message, answers }) {
  if (!message.seen.length) return html`<p class="quiet">It was shown no message.</p>`;
  return html`<section><h3>The messages it was shown</h3><ol class="plain">${message.seen.map((id) => {
    const m = debate.messages.find((n) => n.id === id);
    if (!m) return null;
    const received = message.received[String(id)];
    return html`<li key=${id} class="sent"><p class="bar start"><b>${title(debate, m)}</b>${m.key !== null && html`<${Chip} answer=${answers.get(m.key)} />`}${
      message.altered.includes(id) && html`<span class="badge warn">altered</span>`}</p>
      ${received !== undefined && html`<p class="quiet small">as it arrived:</p><${Text} text=${received} /><p class="quiet small">as it was said:</p>`}
      <${Text} text=${m.content} /></li>`;
  })}</ol></section>`;
}
