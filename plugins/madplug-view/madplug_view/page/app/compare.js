// Two cells on the same samples: the four-fold table, and one sample side by side.

import { useState } from '../vendor/hooks/index.js';
import { data } from './data.js';
import { brief, plural, rounded, score, whole } from './format.js';
import { html } from './html.js';
import { Card } from './card.js';
import { Changes, Neighbours, Question, Toggles, Verdict, useNeighbourKeys, useNeighbours } from './debate.js';
import { Crumbs, Problem, Term, Title, useAnswer } from './parts.js';
import { Reading } from './rich.js';
import { nameOf, toCell, toContrast, toDebate, toPair, toStudy } from './routes.js';
import { Strip } from './strip.js';

export function ContrastPage({ study, first, second, query }) {
  const about = useAnswer(() => data.overview(study, query.metric), [study, query.metric]);
  const metric = about.value?.metric;
  const { value: found, error } = useAnswer(
    () => (metric === undefined ? Promise.resolve(null) : data.contrast(study, first, second, metric, query.with)), [study, first, second, metric, query.with]);
  if (error ?? about.error) return html`<${Problem} error=${error ?? about.error} />`;
  if (!found) return html`<p class="loading">Loading…</p>`;
  const link = (field, text) => html`<a class="count" href=${toCell(study, first, { other: second, with: query.with, field, metric })}>${text}</a>`;
  const total = found.both + found.first + found.second + found.neither;
  const share = (n) => (total ? `${Math.round((100 * n) / total)}%` : '–');
  const field = (name, kind, text) => html`<td class=${kind}>${link(name, whole(found[name]))}<span class="quiet small block">${share(found[name])} · ${text}</span></td>`;
  const theirs = query.with ? Number(query.with) : study;
  const [one, two] = [[study, first], [theirs, second]].map(([s, cell]) => brief(`${query.with ? `${nameOf(s)}: ` : ''}${cell}`, 80));
  return html`<${Crumbs} links=${[[about.value.name, toStudy(study)]]} /><main>
    <${Title} window=${`${one} and ${two}`}>Two cells compared<//>
    <p class="facts">${plural(total, 'debate')} on the same samples, by <b>${found.metric ?? 'no metric'}</b>. Every number opens its debates.</p>
    ${total + found.left_out > 0 && (found.tests ? html`<${Tested} key=${`${one} ${two} ${metric}`} ask=${() => data.test(study, first, second, metric, query.with)} one=${one} two=${two} />`
      : html`<p class="quiet small">${data.live ? 'With madplug-report installed, this page has the paired test of the difference.'
        : 'The paired test of the difference is on the page that madplug view serves, and in the report; an export does not have it.'}</p>`)}
    <div class="wide" role="region" aria-label="Four-fold table" tabindex="0"><table class="fourfold">
      <thead><tr><td></td><th scope="col"><span class="quiet small block">${two}</span>right</th><th scope="col"><span class="quiet small block">${two}</span>wrong</th></tr></thead>
      <tbody><tr><th scope="row"><span class="quiet small block">${one}</span>right</th>${field('both', 'same', 'both right')}${field('first', 'won', 'only the first right')}</tr>
      <tr><th scope="row"><span class="quiet small block">${one}</span>wrong</th>${field('second', 'lost', 'only the second right')}${field('neither', 'same', 'both wrong')}</tr></tbody></table></div>
    ${found.unpaired.map((n, i) => n > 0 && html`<p class="quiet small">${plural(n, 'debate')} of ${[one, two][i]} left out: the other cell has no score for the same sample and repeat</p>`)}
    ${found.others > 0 && html`<p class="quiet small">${plural(found.others, 'debate')} left out: samples of one id that differ in question, choices, references, context, group or other columns, or in what is hidden from whom</p>`}
    ${found.left_out > 0 && html`<p class="quiet small">${plural(found.left_out, 'pair')} with a score other than 0 or 1 left out</p>`}
    <p class="bar start after"><a class="button" href=${toCell(study, first, { other: second, with: query.with })}>All debates that were decided differently</a>
      <a href=${toContrast(theirs, second, first, { metric, with: query.with && String(study) })}>the other way round</a></p></main>`;
}

const signed = (x) => `${x < 0 ? '−' : '+'}${rounded(Math.abs(x), 3)}`;

// The paired test of the difference between the first and the second cell.
function Tested({ ask, one, two }) {
  const { value: test, error } = useAnswer(ask, []);
  if (error) return html`<${Problem} error=${error} />`;
  if (!test) return html`<p class="quiet small">testing the difference…</p>`;
  const p = test.p < 0.0001 ? 'p < 0.0001' : `p = ${rounded(test.p, 4)}`;
  return html`<p>${one} less ${two}: <b>${signed(test.difference)}</b>${test.ci95 && ` [${test.ci95.map(signed).join(', ')}]`}, ${p} <${Term}
    means=${`Paired on ${plural(test.samples, 'sample')} (${test.test}). A difference of ${score(test.detectable)} would show four times in five with so many. The p-value is of this comparison alone: who looks at many finds some below 0.05 by chance.`}>${
    test.test}<//></p>`;
}

export function PairPage({ study, first, second, id, query }) {
  const theirs = query.with ? Number(query.with) : study;
  const ask = (of, cell) => useAnswer(() => data.debate(of, { ...id, cell }), [of, cell, id.repeat, id.sample]);
  const [one, two] = [ask(study, first), ask(theirs, second)];
  const [reading, setReading] = useState({ raw: false, expanded: false });
  const address = (_, row) => toPair(study, first, second, row, { with: query.with });
  const place = { ...id, cell: first };
  const named = (of, cell, most) => `${brief(cell, most)}${theirs === study ? '' : ` (${nameOf(of)})`}`;
  const found = useNeighbours(study, place, { other: second, with: query.with }); // else those decided differently
  useNeighbourKeys(study, place, address);
  if (one.error ?? two.error) return html`<${Problem} error=${one.error ?? two.error} />`;
  if (!one.value || !two.value) return html`<p class="loading">Loading…</p>`;
  return html`<${Reading.Provider} value=${reading}><${Crumbs} links=${[[nameOf(study), toStudy(study)], [`${named(study, first, 30)} and ${named(theirs, second, 30)}`, toContrast(study, first, second, { with: query.with })]]} /><main class="pair-page">
    <div class="bar"><${Title} window=${`${id.sample}, two cells`}>${brief(id.sample, 100)}${
      one.value.repeated || two.value.repeated ? html`<span class="quiet"> · repeat ${id.repeat}</span>` : null}<//><${Neighbours} study=${study} id=${place} cells=${[]} found=${found} address=${address} /></div>
    <div class="bar start"><${Toggles} reading=${reading} set=${setReading} /></div>
    <${Question} debate=${one.value} />
    <div class="pair">${[[study, one.value], [theirs, two.value]].map(([of, debate]) => html`<${Half} key=${`${of} ${debate.cell}`} study=${of} name=${named(of, debate.cell, 70)} debate=${debate} id=${{ ...id, cell: debate.cell }}
      answers=${alike([one.value, two.value], debate)} />`)}</div></main><//>`;
}

// The answers of a debate, coloured alike in all of these debates: those of the first, then what the others add.
function alike(debates, debate) {
  const places = new Map(debates[0].answers.map((a) => [a.key, a.nth]));
  let next = Math.max(-1, ...places.values());
  for (const { answers } of debates) for (const a of answers) if (!places.has(a.key)) places.set(a.key, next += 1);
  return new Map(debate.answers.map((a) => [a.key, { ...a, nth: places.get(a.key) }]));
}

function Half({ study, name, debate, id, answers }) {
  const jump = (mid) => document.getElementById(`m${mid}`)?.scrollIntoView({ block: 'center' });
  return html`<section class="half" aria-label=${name}><h2><a href=${toDebate(study, id)}>${name}</a></h2>
    <${Verdict} debate=${debate} answers=${answers} />
    <${Changes} debate=${debate} answers=${answers} />
    <${Strip} debate=${debate} moment=${debate.messages.length} answers=${answers} jump=${jump} />
    <h3>Messages</h3>
    ${debate.rounds.map((round) => html`<div key=${round.number}><h4>${round.number ? `Round ${round.number}` : 'Before round 1'}</h4>${round.messages.map((mid) => {
      const m = debate.messages.find((n) => n.id === mid);
      return html`<${Card} key=${mid} study=${study} debate=${debate} message=${m} answers=${answers} state="" show=${() => {}}
        open=${() => { location.hash = toDebate(study, id, { at: debate.messages.indexOf(m) + 1 }); }} />`;
    })}</div>`)}</section>`;
}

