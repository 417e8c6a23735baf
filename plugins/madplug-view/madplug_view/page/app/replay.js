// A debate at a moment: how many of its messages have been said. Everything the page shows follows from that.

import { useEffect, useRef, useState } from '../vendor/hooks/index.js';
import { brief, plural } from './format.js';
import { html } from './html.js';
import { Chip, useKeys } from './parts.js';
import { replaceQuery } from './routes.js';

const SIGNS = {
  first: 'M3 3v10M13 3v10l-7-5z', back: 'M11 3v10l-7-5z', pause: 'M4 3h3v10h-3zM9 3h3v10h-3z', play: 'M4 2v12l9-6z',
  on: 'M5 3v10l7-5z', last: 'M13 3v10M3 3v10l7-5z',
};
const SPEEDS = [0.5, 1, 2, 4, 8];

// The moments of a debate: 0 before the first message, n after the n-th, and one more for the decision.
export const lastMoment = (debate) => debate.messages.length + (debate.decision || debate.error !== null ? 1 : 0);

// Whose answer stands after a moment: the latest readable one of each agent that votes.
export function standing(debate, moment) {
  const voters = debate.agents.some((a) => a.votes) ? new Set(debate.agents.filter((a) => a.votes).map((a) => a.id)) : null;
  const found = new Map();
  for (const m of debate.messages.slice(0, moment)) {
    if (m.agent !== null && m.key !== null && !m.retracted && m.round > 0 && (voters === null || voters.has(m.agent))) found.set(m.agent, m.key);
  }
  return found;
}

// Plays a debate: the moment, and what moves it. The moment is in the address, so that it can be linked to.
export function useReplay(debate, query) {
  const last = debate ? lastMoment(debate) : 0;
  const given = Number(query.at);
  const moment = query.at === undefined || !(given >= 0) ? last : Math.min(given, last);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(1);
  const latest = useRef(moment);
  latest.current = moment;
  const go = (to) => replaceQuery({ ...query, at: String(Math.max(0, Math.min(last, to))) });
  const play = () => {
    if (latest.current >= last) go(0);
    setPlaying(true);
  };
  useEffect(() => {
    if (!playing) return undefined;
    const timer = setInterval(() => {
      if (latest.current >= last) setPlaying(false);
      else go(latest.current + 1);
    }, 1400 / speed);
    return () => clearInterval(timer);
  }, [playing, speed, last]);
  useEffect(() => {
    if (playing && moment >= last) setPlaying(false);
  }, [moment, last]);
  const step = (by) => { setPlaying(false); go(latest.current + by); };
  const faster = (by) => setSpeed((s) => SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, SPEEDS.indexOf(s) + by))]);
  const pause = () => setPlaying(false);
  return { moment, last, playing, speed, play, pause, step, faster, setSpeed, go: (to) => { setPlaying(false); go(to); } };
}

export function useReplayKeys(replay) {
  useKeys((event) => {
    const onButton = event.target.closest?.('button, a, summary, input');
    if (event.key === ' ' && !(onButton && onButton.type !== 'range')) {
      if (replay.playing) replay.pause();
      else replay.play();
      return true;
    }
    if (event.target.type === 'range') return false;
    const wide = event.target.closest?.('.wide');
    if (wide && wide.scrollWidth > wide.clientWidth && event.key.startsWith('Arrow')) return false; // they scroll it
    const actions = {
      ArrowRight: () => replay.step(1), ArrowLeft: () => replay.step(-1), Home: () => replay.go(0), End: () => replay.go(replay.last),
      '+': () => replay.faster(1), '-': () => replay.faster(-1),
    };
    if (!actions[event.key]) return false;
    actions[event.key]();
    return true;
  }, [replay.playing, replay.moment, replay.last, replay.speed]);
}

export function ReplayBar({ debate, replay, answers }) {
  const counts = new Map();
  for (const key of standing(debate, replay.moment).values()) counts.set(key, (counts.get(key) ?? 0) + 1);
  const votes = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 4);
  const { moment, last, playing, speed } = replay;
  const button = (label, sign, action, off) => html`<button type="button" class="tool" aria-label=${label} title=${label}
    onClick=${action} disabled=${off}><svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d=${SIGNS[sign]} /></svg></button>`;
  return html`<div class="replay" role="group" aria-label="Replay">
    ${button('To the start (Home)', 'first', () => replay.go(0), moment === 0)}
    ${button('One step back (left arrow)', 'back', () => replay.step(-1), moment === 0)}
    ${playing ? button('Pause (space)', 'pause', replay.pause) : button('Play (space)', 'play', replay.play)}
    ${button('One step on (right arrow)', 'on', () => replay.step(1), moment === last)}
    ${button('To the end (End)', 'last', () => replay.go(last), moment === last)}
    <input type="range" aria-label="Moment" min="0" max=${last} value=${moment} aria-valuetext=${told(debate, moment)}
      onInput=${(e) => replay.go(Number(e.target.value))} />
    <span class="moment" aria-live="off">${told(debate, moment)}</span>
    <span class="standing" aria-label="Answers at this moment" title="the latest readable answer of each voter">${votes.map(([key, n]) => html`<span key=${key} class="bar start"><${Chip} answer=${answers.get(key)} /> ${n}</span>`)}</span>
    <label class="speed"><span class="word">Speed</span> <select value=${String(speed)} onChange=${(e) => replay.setSpeed(Number(e.target.value))}>${
      SPEEDS.map((s) => html`<option value=${String(s)}>${s}×</option>`)}</select></label></div>`;
}

function told(debate, moment) {
  if (moment === 0) return 'before the first message';
  if (moment > debate.messages.length) return debate.error === null ? 'the decision' : 'the failure';
  const m = debate.messages[moment - 1];
  const who = m.agent === null ? 'a note' : brief(debate.agents.find((a) => a.id === m.agent)?.name ?? '?', 24);
  return `${moment} of ${plural(debate.messages.length, 'message')}: ${m.round ? `round ${m.round}, ` : ''}${who}`;
}
