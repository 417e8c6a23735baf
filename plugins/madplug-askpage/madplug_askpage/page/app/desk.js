// The form, the earlier questions, and whose answers the reader has picked.

import { useEffect, useRef, useState } from '../../vendor/hooks/index.js';
import { brief, money, plural, visible, whole } from '../../app/format.js';
import { html } from '../../app/html.js';
import { Interval, Problem, Title, useAnswer } from '../../app/parts.js';
import { get, post } from './server.js';

const PAUSE = 400; // milliseconds without a key before an estimate or a search
const USUAL = 'council.three_stages'; // the method where no council has its own
const OTHER = ' '; // no council is called this
const kept = {}; // the form, while another page is shown
const LABELS = { auto: 'auto: whatever can be reached', embedded: 'embedded: the embedded model, twice' };

export function Top() {
  return html`<nav class="crumbs" aria-label="Where this is"><a class="home" href="#/">Ask a council</a><span class="others"><a href="../#/">all studies</a></span></nav>`;
}

export function Desk({ follow }) {
  const { value: offer, error } = useAnswer(() => get('councils'), []);
  return html`<${Top} /><main><${Title} window="Ask">${follow ? 'Ask a follow-up' : 'Ask several models'}<//>
    ${error && html`<${Problem} error=${error} />`}${offer ? html`<${Form} offer=${offer} follow=${follow} />` : !error && html`<p class="loading">Loading…</p>`}
    <${History} /><${Wins} /></main>`;
}

function body(q, follow) {
  const lines = (text) => (text ?? '').split('\n').map((line) => line.trim()).filter(Boolean);
  return { question: q.question ?? '', council: q.council === OTHER ? null : q.council, seats: q.council === OTHER ? lines(q.seats) : [],
    only: q.only ?? [], chair: q.chair || null, method: q.method || null, choices: lines(q.choices), files: q.files ?? [], images: q.images ?? [],
    follow, max_usd: q.usd ? Number(q.usd) : null, blind: Boolean(q.blind) };
}

function Form({ offer, follow }) {
  const names = Object.keys(offer.councils);
  const [q, setQ] = useState({ council: names[0] ?? OTHER, ...kept, again: false });
  const [expected, setExpected] = useState({});
  const [problem, setProblem] = useState(null);
  const [open] = useState(Boolean(kept.blind || kept.usd || kept.choices || kept.files?.length || kept.images?.length)); // once: to empty a field does not close it
  const first = useRef(null);
  useEffect(() => first.current.focus(), []);
  const set = (change) => { Object.assign(kept, change); setQ((before) => ({ ...before, ...change })); };
  const sent = body(q, follow);
  const council = offer.councils[q.council];
  const seats = Object.keys(council?.seats ?? {});
  useEffect(() => {
    setProblem(null);
    if (!sent.question.trim() || !(council || sent.seats.length)) return setExpected({}) ?? undefined;
    let wanted = true;
    const timer = setTimeout(() => post('estimate', sent).then((found) => wanted && setExpected(found), (e) => wanted && setExpected({ error: e.message })), PAUSE);
    return () => { wanted = false; clearTimeout(timer); };
  }, [JSON.stringify(sent)]);
  const ask = (event) => {
    event.preventDefault();
    post('ask', { ...sent, again: q.again }).then(({ id }) => { delete kept.question; location.hash = `#/${encodeURIComponent(id)}`; }, setProblem);
  };
  const ticked = (name) => !q.only?.length || q.only.includes(name);
  const tick = (name) => set({ only: seats.filter((n) => ticked(n) !== (n === name)) });
  return html`<form class="ask" onSubmit=${ask}>${follow && html`<p class="quiet small">The seats are shown the question and the answer of <a href=${`#/${encodeURIComponent(follow)}`}>${follow}</a>.</p>`}
    <label class="wide-label"><span>Question</span><textarea rows="4" required ref=${first} value=${q.question ?? ''} onInput=${(e) => set({ question: e.target.value })}></textarea></label>
    <div class="bar start"><label>Council <select value=${q.council} onChange=${(e) => set({ council: e.target.value, only: [], chair: '' })}>${
      names.map((name) => html`<option value=${name}>${LABELS[name] ?? name}</option>`)}<option value=${OTHER}>other seats…</option></select></label>
      <label>Method <select value=${q.method ?? ''} onChange=${(e) => set({ method: e.target.value })}><option value="">${
        council ? `the council's (${council.method})` : USUAL}</option>${
        Object.keys(offer.methods).filter((name) => council || name !== USUAL).map((name) => html`<option value=${name}>${name}</option>`)}</select></label>
      <label>Chair <select value=${q.chair ?? ''} onChange=${(e) => set({ chair: e.target.value })}><option value="">${council?.chair ?? ((sent.only.length || seats.length) === 2 ? 'the first seat' : 'the best-ranked seat')}</option>${
        seats.filter((name) => name !== council.chair).map((name) => html`<option value=${name}>${name}</option>`)}</select></label></div>
    <p class="quiet small">${offer.methods[q.method || council?.method || USUAL]}</p>
    ${council ? html`<fieldset><legend>Seats</legend>${seats.map((name) => html`<label class="seat"><input type="checkbox" checked=${ticked(name)} onChange=${() => tick(name)} />
        <b>${brief(name, 40)}</b> <span class="quiet small">${brief(council.seats[name].model, 50)}${priced(council.seats[name].price)}</span>${
        council.seats[name].problem && html` <span class="badge warn">${brief(council.seats[name].problem, 160)}</span>`}</label>`)}</fieldset>`
    : html`<label class="wide-label"><span>Seats, a line each: NAME=PLUGIN:MODEL</span><textarea rows="3" value=${q.seats ?? ''} placeholder="small=openai:gpt-4o-mini"
        onInput=${(e) => set({ seats: e.target.value })}></textarea></label>`}
    <details open=${open}><summary>Files, options, budget</summary><div class="more"><${Files} q=${q} set=${set} />
      <label class="wide-label"><span>Options to choose from, a line each</span><textarea rows="2" value=${q.choices ?? ''} onInput=${(e) => set({ choices: e.target.value })}></textarea></label>
      <label>Start no call once it has cost $<input type="number" min="0" step="any" value=${q.usd ?? ''} onInput=${(e) => set({ usd: e.target.value })} /></label>
      <label><input type="checkbox" checked=${q.blind} onChange=${(e) => set({ blind: e.target.checked })} /> I pick the best answer before I see whose it is</label>
      <label><input type="checkbox" checked=${q.again} onChange=${(e) => setQ({ ...q, again: e.target.checked })} /> Ask again what is on record</label></div></details>
    ${(problem || expected.error) && html`<p class="problem" role="alert">${visible(problem?.message ?? expected.error)}</p>`}
    <p class="bar start"><button class="button main">Ask</button><span class="quiet" role="status">${
      expected.text && `${plural(expected.seats, 'seat')}, ${expected.text}${expected.seats === 1 ? '; nothing is reviewed' : ''}`}</span></p></form>`;
}

const priced = (price) => (!price ? ', price unknown' : price.prompt || price.completion ? `, ${money(price.prompt)} and ${money(price.completion)} per million tokens in and out` : ', free');

// Texts and images as the browser reads them: the server opens no path of the page's.
function Files({ q, set }) {
  const read = async (event) => {
    const picked = [...event.target.files];
    event.target.value = '';
    const images = await Promise.all(picked.filter((f) => f.type.startsWith('image/')).map(asUrl));
    const files = await Promise.all(picked.filter((f) => !f.type.startsWith('image/')).map(async (f) => ({ name: f.name, text: await f.text() })));
    set({ files: [...q.files ?? [], ...files], images: [...q.images ?? [], ...images] });
  };
  const found = [...(q.files ?? []).map((f) => `${brief(f.name, 40)} (${whole(f.text.length)} characters)`), ...(q.images ?? []).map((_, i) => `image ${i + 1}`)];
  return html`<label>Texts and images <input type="file" multiple onChange=${read} /></label>
    ${found.length > 0 && html`<p class="small">${found.join(', ')} <button type="button" class="link" onClick=${() => set({ files: [], images: [] })}>remove</button></p>`}`;
}

const asUrl = (file) => new Promise((resolve) => {
  const reader = new FileReader();
  reader.onload = () => resolve(reader.result);
  reader.readAsDataURL(file);
});

// What is known of it.
function cost(rows) {
  const known = rows.filter((row) => row.cost_usd !== null);
  if (!known.length) return 'cost unknown';
  return `${money(known.reduce((sum, row) => sum + row.cost_usd, 0))}${known.length < rows.length ? ' and what has no known price' : ''}`;
}

// The earlier questions by day, with what each day cost.
function History() {
  const [query, setQuery] = useState('');
  const [asked, setAsked] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setAsked(query), PAUSE);
    return () => clearTimeout(timer);
  }, [query]);
  const { value: rows, error } = useAnswer(() => get(`history?query=${encodeURIComponent(asked)}`), [asked]);
  if (error) return html`<${Problem} error=${error} />`;
  const days = new Map();
  for (const row of rows ?? []) days.set(row.day, [...days.get(row.day) ?? [], row]);
  return html`<section aria-labelledby="earlier"><div class="bar"><h2 id="earlier">Earlier questions</h2>
    <label class="search"><span class="sr">Search</span><input type="search" placeholder="words of a question or an answer" value=${query} onInput=${(e) => setQuery(e.target.value)} /></label></div>
    ${rows && !rows.length && html`<p class="quiet">${asked ? 'none with these words' : 'none yet'}</p>`}
    ${[...days].map(([day, found]) => html`<h3>${day} <span class="quiet small">${plural(found.length, 'question')}, ${
      cost(found)}</span></h3>
      <ul class="plain">${found.map((row) => html`<li class="earlier"><a href=${`#/${encodeURIComponent(row.debate)}`}>${brief(row.question, 120)}</a>${' '}
        <span class="state ${row.status}">${row.status}</span><span class="quiet small block">${brief(row.answer, 160)}</span></li>`)}</ul>`)}</section>`;
}

// Whose answers the reader has picked without knowing whose they were.
function Wins() {
  const { value: rows } = useAnswer(() => get('picks'), []);
  if (!rows?.length) return null;
  return html`<section aria-labelledby="wins"><h2 id="wins">Picked blind</h2><div class="wide" role="region" aria-labelledby="wins" tabindex="0"><table class="wins">
    <thead><tr><th scope="col">seat</th><th scope="col" class="n">picked</th><th scope="col" class="n">shown</th><th scope="col">share, with its 95% interval</th></tr></thead>
    <tbody>${rows.map((row) => html`<tr><th scope="row">${brief(row.seat, 40)}</th><td class="n">${row.wins}</td><td class="n">${row.of}</td>
      <td>${row.mean.toFixed(2)}${row.ci95 && html` <span class="quiet small">[${row.ci95.map((x) => x.toFixed(2)).join(', ')}]</span>`} <${Interval} score=${row} /></td></tr>`)}</tbody></table></div>
    <p class="quiet small">Intervals are Wilson's. By chance, one of three answers is picked in a third of the cases.</p></section>`;
}
