// Numbers, durations and texts for people.

const HIDDEN = new RegExp('[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f'
  + '\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}]', 'gu');

// A text with its control, direction and invisible characters spelled out; tabs and line ends stay.
export function visible(text) {
  return String(text ?? '').replace(/\r\n/g, '\n').replace(HIDDEN,
    (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
}

// A text on one line, no longer than `most` characters. Left out is its middle: names of cells often differ at the end.
export function brief(text, most = 40) {
  const line = visible(text).replace(/\s+/g, ' ').trim();
  const end = Math.floor(most / 3);
  return line.length <= most ? line : `${line.slice(0, most - 1 - end)}…${line.slice(-end)}`;
}

export const whole = (n) => Math.round(n).toLocaleString('en');

export const plural = (n, noun) => `${whole(n)} ${noun}${n === 1 ? '' : 's'}`;

export function score(x) {
  return x === null || x === undefined ? '–' : Math.abs(x) >= 1000 ? whole(x) : rounded(x, 3);
}

// As Python rounds, and so the terminal and the report: a half goes to the even digit. Few decimal halves are one in
// binary: 0.7875 is less than it says.
export function rounded(x, digits) {
  const scaled = x * 10 ** digits, below = Math.floor(scaled);
  const half = scaled - below === 0.5 && Number.isInteger(x * 2 ** (digits + 1));
  return (half ? (below + below % 2) / 10 ** digits : x).toFixed(digits);
}

export function money(x) {
  if (x === null || x === undefined) return 'cost unknown';
  const sum = Math.round(x * 1e12) / 1e12; // shown alike in whatever order it was added up
  return `$${sum && sum < 0.001 ? sum.toPrecision(2) : sum.toFixed(!sum ? 0 : sum < 1 ? 4 : 2)}`;
}

export function duration(seconds) {
  if (!(seconds >= 0)) return '–';
  if (seconds < 0.1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// `a`, `a and b`, `a, b and c`.
export function listed(names) {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names[names.length - 1]}`;
}

export const letterOf = (i) => (i < 26 ? String.fromCharCode(65 + i) : String(i + 1));
