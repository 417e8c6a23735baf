// One question: its answer, who was not heard, the seats as they write, who ranked whom where, and what else it could have been.

import { useEffect, useState } from '../../vendor/hooks/index.js';
import { brief, letterOf, listed, money, plural, visible } from '../../app/format.js';
import { html } from '../../app/html.js';
import { Problem, Title } from '../../app/parts.js';
import { Rich } from '../../app/rich.js';
import { Top } from './desk.js';
import { exported, follow, post } from './server.js';

const WORDS = { running: 'running', stopped: 'stopped', decided: 'decided', partial: 'decided, partial', undecided: 'undecided', failed: 'failed' };
const HEADS = { consensus: 'All agree', contradictions: 'They contradict each other', partial_coverage: 'Only some treat', unique_insights: 'Only one saw', blind_spots: 'None treats' };

export function Council({ id }) {
  const [state, setState] = useState(null);
  const [drafts, setDrafts] = useState({});
  const [count, setCount] = useState(0);
  const [error, setError] = useState(null);
  useEffect(() => follow(id, (event, value) => {
    if (event === 'lost') setError(new Error(`there is no debate '${id}' here, or the server has ended`));
    else if (event === 'state') setState(value);
    else setDrafts(value);
  }), [id, count]);
  const act = (what, value) => post(`${encodeURIComponent(id)}/${what}`, value).then(() => { setError(null); setCount((n) => n + 1); toTitle(); }, setError);
  useEffect(toTitle, [state === null]);
  if (!state) return html`<${Top} />${error ? html`<${Problem} error=${error} />` : html`<p class="loading">Loading…</p>`}`;
  const told = state.hidden ? 'Names, reviews and the answer are shown once you have picked the best answer.'
    : state.status === 'running' ? state.stage || 'about to begin' : state.decided_by ?? '';
  return html`<${Top} /><main><${Title} window=${brief(state.question, 50) || 'Ask'}>${brief(state.question, 200) || 'A question'}<//>
    <p class="bar start"><span class=${`state ${state.status}`}>${WORDS[state.status]}</span><span role="status">${visible(told)}</span></p>
    ${error && html`<${Problem} error=${error} />`}${state.problem && state.status !== 'running' && html`<${Problem} error=${state.problem} />`}
    ${(state.missing ?? []).map((text) => html`<p class="problem">Not heard: ${visible(text)}</p>`)}
    <${Asked} state=${state} /><${Outcome} state=${state} draft=${drafts.chair} />
    <${Actions} state=${state} act=${act} />
    ${state.seats.length > 0 && !state.votes?.length && html`<section aria-labelledby="seats"><h2 id="seats">Answers</h2><div class="seats">${
      state.seats.map((seat) => html`<${Seat} key=${seat.id} seat=${seat} draft=${drafts[seat.id]} state=${state} act=${act} />`)}</div></section>`}
    ${state.reviews?.some((r) => Object.keys(r.places).length) && html`<${Matrix} state=${state} />`}
    ${Object.keys(state.rules ?? {}).length > 0 && html`<${Otherwise} id=${id} rules=${state.rules} />`}</main>`;
}

const toTitle = () => document.querySelector('h1')?.focus(); // the button that was pressed may be gone

function Asked({ state }) {
  const with_ = [state.texts && plural(state.texts, 'text'), state.images && plural(state.images, 'image')].filter(Boolean);
  const long = state.question.length > 200 || state.question.includes('\n');
  return html`${long && html`<details><summary>the whole question</summary><${Rich} text=${state.question} /></details>`}
    ${with_.length > 0 && html`<p class="quiet small">with ${listed(with_)}</p>`}
    ${state.choices?.length > 0 && html`<ol class="letters">${state.choices.map((text) => html`<li>${visible(text)}</li>`)}</ol>`}`;
}

// The council's answer, or what its chair is writing.
function Outcome({ state, draft }) {
  if (state.hidden || (!state.answer && !draft && !state.votes?.length)) return null;
  return html`<section class="question-box outcome" aria-labelledby="answer"><h2 id="answer">Answer${!state.answer && draft ? ', being written' : ''}</h2>
    ${(state.answer || draft) && html`<${Rich} text=${state.answer || draft} />`}
    ${state.tie && html`<p class="quiet">It was a tie.</p>`}
    ${Object.entries(state.dissent ?? {}).map(([seat, answer]) => html`<p class="small"><b>${brief(seat, 40)}</b> answered otherwise: ${brief(answer, 200)}</p>`)}
    ${state.votes?.length > 0 && html`<ul class="plain">${state.votes.map((v) => html`<li><b>${brief(v.seat, 40)}</b>: ${brief(v.vote, 20)}${
      v.confidence === null ? '' : `, ${Math.round(v.confidence * 100)}% sure`}${v.reason && html` <span class="quiet">${brief(v.reason, 400)}</span>`}</li>`)}</ul>`}
    ${state.analysis && html`<details><summary>analysis of the answers</summary><p class="quiet small">${
      state.seats.filter((seat) => seat.answer).map((seat, i) => `Answer ${letterOf(i)} is ${seat.name}`).join('; ')}</p>${Object.entries(HEADS).map(([key, head]) => [state.analysis[key]].flat().filter(Boolean).length > 0
      && html`<h4>${head}</h4><ul>${[state.analysis[key]].flat().map((text) => html`<li>${brief(typeof text === 'string' ? text : JSON.stringify(text), 600)}</li>`)}</ul>`)}</details>`}</section>`;
}

function Actions({ state, act }) {
  const [stops, setStops] = useState(false);
  const ended = state.status !== 'running';
  return html`<p class="bar start">
    ${!ended && html`<button type="button" class="button" disabled=${stops} onClick=${() => { setStops(true); act('stop').then(() => setStops(false)); }}>${
      stops ? 'Stopping, once what is in flight is answered' : 'Stop'}</button>`}
    ${['stopped', 'failed'].includes(state.status) && html`<button type="button" class="button" onClick=${() => act('resume', state.limited)}>${
      state.limited ? 'Go on without a budget' : 'Go on'}</button>`}
    ${state.answer && html`<a class="button" href=${`#/?follow=${encodeURIComponent(state.id)}`}>Ask a follow-up</a>`}
    ${state.hidden && ended && html`<button type="button" class="button" onClick=${() => act('pick', null)}>Show without picking</button>`}
    ${ended && !state.hidden && state.seats.length > 0 && html`<a href=${exported(state.id, 'md')} download>save as Markdown</a> <a href=${exported(state.id, 'html')} download>as HTML</a>`}
    ${ended && !state.hidden && html`<a href=${`../#/debate/${encodeURIComponent(state.id)}/main/0/question`}>prompts and replies</a>`}
    <span class="quiet small">${plural(state.calls ?? 0, 'call')}${state.calls ? `, ${money(state.cost_usd)}` : ''}${state.picked ? `; you picked ${state.picked}` : ''}</span></p>`;
}

function Seat({ seat, draft, state, act }) {
  const review = (state.reviews ?? []).find((r) => r.seat === seat.id);
  const writing = state.status === 'running' && draft !== undefined;
  const told = { ok: !writing ? '' : seat.heard ? 'has reviewed' : 'is reviewing', waiting: seat.heard ? 'has answered' : writing ? 'is writing' : 'waits', failed: 'was not heard', silent: 'no answer' }[seat.status];
  const ready = state.hidden && !state.seats.some((s) => s.status === 'waiting' && state.status === 'running');
  return html`<article class="card" aria-label=${seat.name}><header><span class="who">${brief(seat.name, 60)}</span>
      ${seat.model && seat.model !== seat.name && html`<span class="quiet small">${brief(seat.model, 40)}</span>`}
      ${told && html`<span class=${`badge ${seat.status === 'failed' ? 'warn' : ''}`}>${told}</span>`}
      ${seat.place !== null && seat.place !== undefined && html`<span class="badge">mean place ${Number(seat.place.toFixed(2))}</span>`}</header>
    ${seat.error && html`<p class="small">${visible(seat.error)}</p>`}
    ${seat.answer || (writing && draft) ? html`<${Rich} text=${seat.answer || draft} />` : null}
    ${ready && seat.answer && html`<p><button type="button" class="button" onClick=${() => act('pick', seat.id)}>This is the best</button></p>`}
    ${seat.answer && writing && draft && !seat.heard && html`<details><summary>what it is writing</summary><${Rich} text=${draft} /></details>`}
    ${review && html`<details><summary>its review</summary><p class="quiet small">${Object.entries(review.labels).map(([letter, id]) => `Answer ${letter} is ${
      state.seats[id]?.name}`).join('; ')}</p><${Rich} text=${review.text} /></details>`}</article>`;
}

// Who put whose answer in which place.
function Matrix({ state }) {
  const { seats, reviews } = state;
  const name = (id) => brief(seats[id]?.name ?? '?', 30);
  const shown = seats.filter((seat) => reviews.some((r) => Object.values(r.labels).includes(seat.id)));
  return html`<section aria-labelledby="matrix"><h2 id="matrix">Who ranked whom</h2><div class="wide" role="region" aria-labelledby="matrix" tabindex="0"><table class="matrix">
    <thead><tr><th scope="col">reviewer</th>${shown.map((seat) => html`<th scope="col" class="n">${name(seat.id)}</th>`)}</tr></thead>
    <tbody>${reviews.map((r) => html`<tr><th scope="row">${name(r.seat)}</th>${shown.map((seat) => html`<td class=${`n ${seat.id === r.seat ? 'own' : ''}`}>${
      r.places[seat.id] ?? '–'}${seat.id === r.seat && r.places[seat.id] ? html`<span class="sr"> (its own)</span>` : null}</td>`)}</tr>`)}</tbody>
    <tfoot><tr><th scope="row">mean place</th>${shown.map((seat) => html`<td class="n">${typeof seat.place === 'number' ? Number(seat.place.toFixed(2)) : '–'}</td>`)}</tr></tfoot></table></div>
    <p class="quiet small">1 is the best; a seat's own answer is underlined. Reviewers saw letters, not names.${
      typeof state.agreement === 'number' ? ` Their agreement (Kendall's W) is ${state.agreement.toFixed(2)}, of 1.` : ''}</p></section>`;
}

// What another rule would have said, without a call.
function Otherwise({ id, rules }) {
  const [found, setFound] = useState(null);
  const ask = (rule) => post(`${encodeURIComponent(id)}/decide`, rule).then((value) => setFound({ rule, ...value }), (error) => setFound({ rule, error }));
  return html`<section aria-labelledby="otherwise"><h2 id="otherwise">What would have been decided by …</h2>
    <p class="bar start">${Object.entries(rules).map(([rule, text]) => html`<button type="button" class="toggle" aria-pressed=${String(found?.rule === rule)} onClick=${() => ask(rule)}>${text}</button>`)}
      <span class="quiet small">no model is asked</span></p>
    <div role="status">${found && (found.error ? html`<${Problem} error=${found.error} />` : html`<div class="question-box"><p class="quiet">${visible(found.reason)}${found.tie ? ' (a tie)' : ''}</p>${
      found.answer ? html`<${Rich} text=${found.answer} />` : html`<p>undecided</p>`}</div>`)}</div></section>`;
}
