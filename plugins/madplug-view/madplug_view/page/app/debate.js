// A debate: the question, what happened, the answers by round, and every message, to be replayed.

import { useCallback, useEffect, useMemo, useRef, useState } from '../vendor/hooks/index.js';
import { Arrows } from './arrows.js';
import { Card } from './card.js';
import { list } from './cell.js';
import { data } from './data.js';
import { brief, duration, letterOf, listed, money, plural, score, visible, whole } from './format.js';
import { html } from './html.js';
import { Notes } from './notes.js';
import { Chip, Crumbs, Grade, Oracle, Problem, Term, Text, Title, namesOf, useAnswer, useKeys } from './parts.js';
import { Picture } from './picture.js';
import { PromptDialog } from './prompts.js';
import { ReplayBar, useReplay, useReplayKeys } from './replay.js';
import { nameOf, toCell, toDebate, toPair, toStudy } from './routes.js';
import { Reading, Rich } from './rich.js';
import { Strip } from './strip.js';
import { useFollowed } from './study.js';

export function DebatePage({ study, id, query }) {
  const [count, setCount] = useState(0);
  const { value: debate, error } = useAnswer(() => data.debate(study, id), [study, id.cell, id.repeat, id.sample, count]);
  useFollowed(study, (event) => {
    if (event.more || event.debates.some(([c, r, s]) => c === id.cell && r === id.repeat && s === id.sample)) setCount((n) => n + 1);
  });
  if (error) return html`<${Problem} error=${error} />`;
  if (!debate) return html`<p class="loading">Loading…</p>`;
  const links = [[nameOf(study), toStudy(study)], [id.cell, toCell(study, id.cell)]];
  return html`<${Crumbs} links=${links} asked=${nameOf(study)} /><${Whole} key=${`${id.cell}/${id.repeat}/${id.sample}`} study=${study} debate=${debate} id=${id} query=${query} />`;
}

const answersOf = (debate) => new Map(debate.answers.map((a) => [a.key, a]));

function Whole({ study, debate, id, query }) {
  const replay = useReplay(debate, query);
  const answers = useMemo(() => answersOf(debate), [debate]);
  const [prompt, setPrompt] = useState(null);
  useReplayKeys(replay);
  useNeighbourKeys(study, id);
  const found = useNeighbours(study, id);
  const { moment } = replay;
  const open = useCallback((asked) => setPrompt(typeof asked === 'object' ? asked : { message: debate.messages.find((m) => m.id === asked) }), [debate]);
  const ended = moment === replay.last;
  const columns = useMemo(() => (debate.agents.length > MOST_COLUMNS ? WRAPPED : debate.agents.length), [debate]);
  const [reading, setReading] = useState({ raw: false, expanded: false });
  return html`<${Reading.Provider} value=${reading}><main class="debate">
    <div class="bar"><${Title} window=${`${id.sample}, ${id.cell}`}>${brief(id.sample, 100)}${
      debate.repeated ? html`<span class="quiet"> · repeat ${id.repeat}</span>` : null}<//><${Neighbours} study=${study} id=${id} cells=${debate.cells} found=${found} /></div>
    <${Oracle} of=${debate} />
    <div class="top"><div><${Question} debate=${debate} />
      <${Strip} debate=${debate} moment=${moment} answers=${answers} jump=${jumpTo(replay, debate)} /></div><div>
      <${Verdict} debate=${debate} answers=${answers} reached=${ended} open=${open} />
      <${Changes} debate=${debate} answers=${answers} moment=${moment} jump=${jumpTo(replay, debate)} open=${open} />
      <${Notes} study=${study} id=${id} /></div></div>
    <${Board} study=${study} debate=${debate} answers=${answers} replay=${replay} open=${open} columns=${columns}
      reading=${reading} setReading=${setReading} />
    <${Facts} debate=${debate} answers=${answers} open=${open} />
    <p class="quiet small keys"><kbd>space</kbd> plays and pauses, <kbd>←</kbd> <kbd>→</kbd> step, <kbd>Home</kbd> <kbd>End</kbd> ends, <kbd>+</kbd> <kbd>−</kbd> speed, <kbd>n</kbd> <kbd>p</kbd> next and previous debate</p>
    <${ReplayBar} debate=${debate} replay=${replay} answers=${answers} />
    ${prompt && html`<${PromptDialog} study=${study} debate=${debate} asked=${prompt} answers=${answers} close=${() => setPrompt(null)} />`}
  </main><//>`;
}

// Goes to a message: shows it if the replay has not reached it, and brings it into view.
function jumpTo(replay, debate) {
  return (mid) => {
    const at = debate.messages.findIndex((m) => m.id === mid) + 1;
    if (replay.moment < at) replay.go(at);
    const card = document.getElementById(`m${mid}`);
    card?.focus({ preventScroll: true });
    card?.scrollIntoView({ block: 'center', inline: 'center', behavior: calm() ? 'auto' : 'smooth' });
  };
}

const calm = () => matchMedia('(prefers-reduced-motion: reduce)').matches;

function neighbours(study, id) {
  const at = list.study === study ? list.rows.findIndex((r) => r.cell === id.cell && r.repeat === id.repeat && r.sample === id.sample) : -1;
  return at < 0 ? {} : { at, count: `${list.rows.length}${list.next === null ? '' : '+'}`, previous: list.rows[at - 1], next: list.rows[at + 1] };
}

const MOST_PARTS = 20; // of a list, in which a debate that was opened by a link is looked for

// The neighbours in the list that the reader came from, or else in a search in the cell; what follows is loaded when its end is reached.
export function useNeighbours(study, id, search = {}) {
  const [found, setFound] = useState(() => neighbours(study, id));
  useEffect(() => {
    let wanted = true;
    async function look() {
      if (neighbours(study, id).at === undefined) Object.assign(list, { study, search: { cell: id.cell, ...search }, rows: [], next: undefined });
      for (let parts = 0; wanted; parts += 1) {
        const known = neighbours(study, id);
        setFound(known);
        if (known.next || list.next === null || (known.at === undefined && parts === MOST_PARTS)) return;
        const part = await data.page(study, { ...list.search, after: list.next });
        if (wanted) Object.assign(list, { rows: [...list.rows, ...part.rows], next: part.next });
      }
    }
    look().catch(() => {});
    return () => { wanted = false; };
  }, [study, id.cell, id.repeat, id.sample]);
  return found;
}

export function useNeighbourKeys(study, id, address = toDebate) {
  useKeys((event) => {
    const found = neighbours(study, id);
    const to = { n: found.next, p: found.previous }[event.key];
    if (to) location.hash = address(study, to);
    return Boolean(to);
  }, [study, id.cell, id.repeat, id.sample]);
}

export function Neighbours({ study, id, cells, found, address = toDebate }) {
  const pick = (event) => event.target.value && (location.hash = toPair(study, id.cell, event.target.value, id));
  return html`<div class="bar start neighbours">
    ${cells.length > 0 && html`<label>Side by side with <select value="" onChange=${pick}><option value="">a cell…</option>${
      cells.map((c) => html`<option value=${c}>${brief(c, 50)}</option>`)}</select></label>`}
    ${found.at !== undefined && html`<nav class="bar start" aria-label="Debates of the list">
      ${found.previous ? html`<a class="button" href=${address(study, found.previous)}>‹ previous</a>` : null}
      <span class="quiet small">${found.at + 1} of ${found.count}</span>
      ${found.next ? html`<a class="button" href=${address(study, found.next)}>next ›</a>` : null}</nav>`}</div>`;
}

export function Question({ debate }) {
  const { sample, references } = debate;
  const right = new Set(debate.answers.filter((a) => a.right).map((a) => a.key).concat(references));
  const images = sample.images.filter((i) => /^data:image\/(png|jpeg|gif|webp);base64,[^…]*$/.test(i));
  return html`<section class="question-box" aria-label="Question">
    ${sample.context.length > 0 && html`<details><summary>${plural(sample.context.length, 'passage')}${
      sample.hidden_from?.context?.length ? `, not shown to ${listed(sample.hidden_from.context.map((role) => brief(role, 30)))}` : ''}</summary>${
      sample.context.map((text) => html`<${Rich} text=${text} />`)}</details>`}
    <${Rich} text=${sample.question} />
    ${images.map((source) => html`<img src=${source} alt="An image of the question" />`)}
    ${sample.images.length > images.length && html`<p class="quiet small">${plural(sample.images.length - images.length, 'image')} not shown</p>`}
    ${sample.choices.length > 0 && html`<ol class="choices">${sample.choices.map((text, i) => html`<li class=${
      right.has(letterOf(i)) || right.has(text) ? 'reference' : ''}><b>${letterOf(i)}</b> <${Rich} text=${text.slice(0, 600)} inline=${true} />${
      right.has(letterOf(i)) || right.has(text) ? html` <${Grade} right=${true} />` : null}</li>`)}</ol>`}
    ${references.length > 0 && html`<p class="quiet small">reference: <bdi>${brief(references.join(' | '), 300)}</bdi></p>`}
    ${debate.ungraded && html`<p class="quiet small">An answer counts as right if it is spelled like the reference: the study's answer format cannot be used (${
      brief(debate.ungraded, 200)}).</p>`}</section>`;
}

const HOW = [
  ['agreed', 'agreed', 'The decision protocol\'s own condition for agreement was met, such as a majority or a threshold.'],
  ['tie', 'a tie', 'Several answers were equally far ahead.'],
  ['fallback', 'chosen by a fallback', 'The protocol could not decide as intended, for instance because no ballot could be read, and used its fallback.'],
];

// How the debate ended; while a replay has not come to it, that it has not.
export function Verdict({ debate, answers, reached = true, open }) {
  const { decision, error, state } = debate;
  if (!reached) return html`<section class="verdict" aria-label="Decision"><h2>Decision</h2><p class="quiet">not reached at this moment of the replay</p></section>`;
  if (error !== null) return html`<section class="verdict" aria-label="Decision"><h2>Failed</h2><div class="problem"><${Text} text=${error} /></div>
    <${Behind} debate=${debate} open=${open} /></section>`;
  if (state === 'running') return html`<section class="verdict"><h2>Decision</h2><p class="quiet">none yet: the debate is running, or was stopped</p></section>`;
  const how = HOW.filter(([name]) => decision[name]);
  const answer = decision.key === null ? null : answers.get(decision.key);
  return html`<section class="verdict" aria-label="Decision"><h2>Decision${debate.missing.length > 0 && ', partial'}</h2>
    ${debate.missing.map((text) => html`<div class="problem"><${Text} text=${text} /></div>`)}
    ${debate.unread.length > 0 && html`<details><summary>${plural(debate.unread.length, 'part')} could not be read</summary><ul class="plain">${
      debate.unread.map((text) => html`<li>${visible(text)}</li>`)}</ul></details>`}
    <p class="bar start"><${Chip} answer=${answer} big=${true} name="undecided" />${debate.right !== null && html`<span class=${
      debate.right ? 'right' : 'wrong'}>${debate.right ? 'right' : 'wrong'}</span>`}${debate.right === false && debate.references.length > 0 && html`<span>the reference is <bdi>${
      brief(debate.references.join(' or '), 60)}</bdi></span>`}${how.map(([name, text, means]) => html`<${Term} key=${name} means=${means}>${text}<//>`)}<span class="quiet">${brief(decision.reason ?? '', 200)}</span></p>
    ${answer && decision.answer && (decision.answer !== decision.key || brief(decision.answer, 120) !== decision.answer) && html`<div class="whole" role="region" tabindex="0" aria-label="The decision in full"><${
      Rich} text=${decision.answer.slice(0, 20_000)} /></div>`}
    <${Votes} debate=${debate} answers=${answers} open=${open} />
    <${Behind} debate=${debate} open=${open} /></section>`;
}

// Links to the prompts and replies behind no message: ballots, judges, phases, metrics; or what was asked before round 1.
function Behind({ debate, open, opening = false }) {
  const groups = new Map();
  for (const call of debate.behind) {
    if (call.opening === opening) groups.set(call.purpose, [...(groups.get(call.purpose) ?? []), call.key]);
  }
  if (!open || !groups.size) return null;
  return html`<p class="behind"><span class="quiet small">prompts and replies${opening ? ' before round 1' : ''}:</span>${[...groups].map(([purpose, keys]) => html` <button
    type="button" class="link" onClick=${() => open({ title: `${brief(purpose, 40)}${opening ? ', before round 1' : ''}`, keys })}>${
      brief(purpose, 40)}${keys.length > 1 ? ` (${whole(keys.length)})` : ''}</button>`)}</p>`;
}

function Votes({ debate, answers, open }) {
  const { votes, scores } = debate.decision;
  const most = Math.max(...Object.values(scores), 0), least = Math.min(...Object.values(scores), 0);
  const total = Object.entries(scores).sort((a, b) => b[1] - a[1]);
  const cast = new Map();
  for (const vote of votes) for (const [key, n] of Object.entries(vote.weights ?? {})) cast.set(key, (cast.get(key) ?? 0) + n);
  const counted = votes.length > 0 && total.every(([key, n]) => (cast.get(key) ?? 0) === n);
  return html`${total.length > 0 && html`<h3>${counted ? 'Votes' : 'Scores'} by answer</h3><div class="scores">${total.map(([key, n]) => html`<${Chip} answer=${answers.get(key)} /><span class="track"><span
      class=${`fill a${(answers.get(key)?.nth ?? 0) % 8}`} style=${{ width: `${most > least ? Math.max(n > 0 ? 2 : 0, 100 * (n - least) / (most - least)) : 0}%` }}></span></span><span class="n">${
      Number(n.toPrecision(4))}</span>`)}</div>`}
    ${votes.length > 0 && html`<details><summary>${plural(votes.length, 'ballot')}${votes.some((v) => !v.valid) ? `, ${whole(votes.filter((v) => !v.valid).length)} unread` : ''}</summary><ul class="plain">${votes.map((v) => html`<li>${
      namesOf(debate, [v.agent])}: ${v.valid ? Object.entries(v.weights).map(([key, n]) => html`<${Chip} answer=${answers.get(key)} name=${brief(key, 30)} />${
      n === 1 ? '' : ` ${score(n)}`} `) : 'unread: no vote was found in it'} <${Ballot} debate=${debate} vote=${v} open=${open} /></li>`)}</ul></details>`}`;
}

// What the voter was asked since round 1 outside its turns.
function Ballot({ debate, vote, open }) {
  const keys = debate.behind.filter((c) => !c.opening && c.agent === vote.agent).map((c) => c.key);
  if (!open || !keys.length) return null;
  return html`<button type="button" class="link" onClick=${() => open({ title: `Asked of ${namesOf(debate, [vote.agent])}`, keys })}>prompt and reply</button>`;
}

const MOST_CHANGES = 8;

// The story: who went from which answer to which, and whose answer that was.
export function Changes({ debate, answers, moment = Infinity, jump, open }) {
  const at = new Map(debate.messages.map((m, i) => [m.id, i + 1]));
  const [all, setAll] = useState(false);
  const every = debate.changes.filter((c) => at.get(c.message) <= moment);
  const found = all ? every : every.slice(0, MOST_CHANGES);
  return html`<section class="story" aria-label="Changes of mind"><h2>Changes of mind</h2>
    ${!debate.changes.length && html`<p class="quiet">${
      debate.state === 'running' ? 'No agent has changed its mind so far.' : 'No agent changed its mind.'}</p>`}
    ${debate.changes.length > 0 && !every.length && html`<p class="quiet">none so far in the replay</p>`}
    <ol class="plain">${found.map((c) => html`<li key=${c.message}>
      <span class="quiet small">round ${c.round}</span> <b>${namesOf(debate, [c.agent])}</b> went from <${Chip} answer=${answers.get(c.before)} /> to <${
      Chip} answer=${answers.get(c.after)} />${c.agents.length ? html` after being shown ${namesOf(debate, c.agents)}, who said so`
      : causeOf(debate, c, debate.messages[at.get(c.message) - 1].seen)}${
        debate.messages[at.get(c.message) - 1].altered.length > 0 && '; some of what it was shown reached it in a changed form'}.
      ${jump && html` <button type="button" class="link" onClick=${() => jump(c.message)}>its message</button>`}
      ${open && html` <button type="button" class="link" onClick=${() => open(c.message)}>${
        debate.messages[at.get(c.message) - 1].calls.length ? 'the prompt it saw' : 'what it saw'}</button>`}</li>`)}</ol>
    ${every.length > MOST_CHANGES && html`<button type="button" class="link" aria-expanded=${String(all)} onClick=${() => setAll(!all)}>${
      all ? 'fewer' : `all ${whole(every.length)} changes`}</button>`}</section>`;
}

// Where no other agent's latest answer was the new one.
function causeOf(debate, change, seen) {
  const others = change.formerly.filter((id) => id !== change.agent);
  if (change.sources.length) return ' after being shown a note that said so';
  if (others.length) return `, once the answer of ${namesOf(debate, others)}, but no longer of any agent that it was shown`;
  if (change.formerly.length) return ', an earlier answer of its own, which no other agent that it was shown gave';
  return seen.length ? ', which no message that it was shown had said' : '';
}

const MOST_COLUMNS = 20; // of agents, who otherwise share a few
const WRAPPED = 5;

// Agents as columns, rounds as rows.
function Board({ study, debate, answers, replay, open, columns, reading, setReading }) {
  const [shown, setShown] = useState(null);
  const board = useRef(null);
  const { moment } = replay;
  const index = useMemo(() => new Map(debate.messages.map((m, i) => [m.id, i + 1])), [debate]);
  const inTime = useMemo(() => new Set(debate.messages.slice(0, moment).map((m) => m.id)), [debate, moment]);
  const now = moment > 0 && moment < replay.last ? debate.messages[moment - 1] : null;
  const centre = debate.messages.find((m) => m.id === (shown ?? now?.id)) ?? null;
  const seen = new Set(centre?.seen ?? []);
  useEffect(() => {
    if (now) document.getElementById(`m${now.id}`)?.scrollIntoView({ block: 'nearest', inline: 'nearest', behavior: calm() ? 'auto' : 'smooth' });
  }, [now?.id]);
  const state = (m) => {
    if (index.get(m.id) > moment) return 'later';
    if (centre?.id === m.id) return 'centre';
    return centre && seen.has(m.id) ? 'seen' : '';
  };
  const drawn = useMemo(() => new Map(), [study, debate, answers, open]);
  const card = (m) => { // the same element again if nothing has changed: of hundreds of messages, a step changes a few
    const now = state(m);
    if (drawn.get(m.id)?.[0] !== now) {
      drawn.set(m.id, [now, html`<${Card} key=${m.id} study=${study} debate=${debate} message=${m} answers=${answers} state=${now} show=${setShown} open=${open} />`]);
    }
    return drawn.get(m.id)[1];
  };
  return html`<section aria-labelledby="messages"><div class="bar start"><h2 id="messages">Messages</h2><${Toggles} reading=${reading} set=${setReading} /></div>
    <p class="quiet small">Hover over a message, or focus it, to see what its author was shown.</p>
    <div class="wide" role="region" aria-label="Messages by agent and round" tabindex="0">
    <div class="board" ref=${board} style=${{ '--columns': columns }}>
      <div class="agents">${debate.agents.length <= columns && debate.agents.map((a) => html`<${AgentHead} key=${a.id} agent=${a} />`)}</div>
      ${debate.rounds.map((round) => html`<${Round} key=${round.number} debate=${debate} round=${round} card=${card} columns=${columns} />`)}
      <${Arrows} board=${board} message=${centre} visibleIds=${inTime} /></div></div></section>`;
}

const READINGS = { expanded: 'Expand all', raw: 'As written, without Markdown and LaTeX' };

// How texts are shown.
export function Toggles({ reading, set }) {
  return Object.entries(READINGS).map(([name, text]) => html`<button type="button" key=${name} class="toggle" aria-pressed=${String(reading[name])}
    onClick=${() => set({ ...reading, [name]: !reading[name] })}>${text}</button>`);
}

function AgentHead({ agent }) {
  const facts = [agent.role !== 'participant' && agent.role, agent.model, !agent.votes && 'does not vote'].filter(Boolean);
  return html`<div class="agent"><b>${brief(agent.name, 40)}</b>
    <span class="quiet small">${facts.map((f) => brief(f, 30)).join(' · ')}</span>${agent.description && html`
    <span class="small persona" title=${brief(agent.description, 1000)}>${brief(agent.description, 300)}</span>`}</div>`;
}

// A round: each agent's messages in its column, in the order of the waves; what no agent wrote across all of them.
function Round({ debate, round, card, columns }) {
  const messages = round.messages.map((id) => debate.messages.find((m) => m.id === id));
  const rows = [];
  for (const m of messages) {
    const column = debate.agents.findIndex((a) => a.id === m.agent) % columns;
    const last = rows[rows.length - 1];
    if (column < 0) rows.push({ note: m });
    else if (last?.cells && !last.cells.some((n, i) => n && i >= column)) last.cells[column] = m;
    else {
      const cells = [];
      cells[column] = m;
      rows.push({ cells });
    }
  }
  return html`<div class="round" role="group" aria-label=${round.number ? `Round ${round.number}` : 'Before round 1'}>
    <h3>${round.number ? `Round ${round.number}` : 'Before round 1'}</h3>${rows.map((row) => (row.note
    ? html`<div class="line across">${card(row.note)}</div>`
    : html`<div class="line">${Array.from({ length: columns }, (_, i) => (row.cells[i] ? card(row.cells[i]) : html`<div key=${`empty ${i}`} class="empty"></div>`))}</div>`))}</div>`;
}

const STEPS = { T: 'right', F: 'wrong' };

// The name of a metric; steps such as FT say what they count.
function Metric({ name }) {
  const step = /[._]([TF])([TF])$/.exec(name);
  if (!step) return brief(name, 60);
  return html`<${Term} means=${`Steps from a ${STEPS[step[1]]} answer to a ${STEPS[step[2]]} one, between rounds or as the name says; an answer that cannot be read is wrong.`}>${brief(name, 60)}<//>`;
}

// What it cost, how it was scored, who took part, and what plugins noted.
function Facts({ debate, open }) {
  const metrics = Object.entries(debate.metrics);
  return html`<section class="about"><h2>About this debate</h2>
    ${debate.state === 'running' ? html`<p class="quiet">Calls, tokens, cost and time are added up when a debate ends.</p>` : html`<dl><div><dt>calls</dt><dd>${whole(debate.calls)}${debate.retries ? `, ${plural(debate.retries, 'failed attempt')}` : ''}</dd></div>
      <div><dt>tokens</dt><dd>${whole(debate.prompt)} + ${whole(debate.completion)}${debate.cached ? `, ${whole(debate.cached)} cached` : ''}</dd></div>
      <div><dt>cost</dt><dd>${debate.calls ? money(debate.cost_usd) : '–'}</dd></div><div><dt>time</dt><dd>${duration(debate.seconds)}</dd></div>
      ${metrics.slice(0, 12).map(([name, value]) => html`<div><dt><${Metric} name=${name} /></dt><dd>${score(value)}</dd></div>`)}</dl>`}
    ${metrics.length > 12 && html`<details><summary>${plural(metrics.length, 'metric')}</summary><dl>${metrics.map(([name, value]) => html`<div><dt><${Metric} name=${name} /></dt><dd>${score(value)}</dd></div>`)}</dl></details>`}
    <details><summary>${plural(debate.agents.length, 'agent')}</summary><ul class="plain">${debate.agents.map((a) => html`<li><b>${brief(a.name, 60)}</b> <span class="quiet">${
      [a.role, a.model, a.votes ? '' : 'does not vote'].filter(Boolean).map((f) => brief(f, 40)).join(' · ')}</span>${a.description && html`<${Text} text=${a.description} />`}</li>`)}</ul></details>
    ${(debate.pictures ?? []).map((p, i) => html`<${Picture} key=${i} picture=${p} />`)}
    ${debate.notes && html`<details><summary>noted by plugins</summary><${Text} text=${debate.notes} /></details>`}
    <${Behind} debate=${debate} open=${open} opening=${true} /></section>`;
}
