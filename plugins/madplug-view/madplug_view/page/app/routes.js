// Where one is: the part of the address after `#`, so that every view, and every moment of a replay, has a link.

let names = []; // of the studies, by their numbers; a link has the name, since another study may have the number later

export const knowStudies = (found) => { names = found; };
export const nameOf = (study) => names[study] ?? 'study';

const parts = (page, study, ...texts) => [page, nameOf(study), ...texts].map((t) => encodeURIComponent(t)).join('/');

function asked(query) {
  const kept = Object.entries(query ?? {}).filter(([, v]) => v !== undefined && v !== null && v !== '' && v !== false)
    .map(([k, v]) => [k, k === 'with' ? nameOf(v) : v]);
  return kept.length ? `?${new URLSearchParams(kept)}` : '';
}

export const toStudy = (study, query) => `#/${parts('study', study)}${asked(query)}`;
export const toCell = (study, cell, query) => `#/${parts('cell', study, cell)}${asked(query)}`;
export const toDebate = (study, id, query) => `#/${parts('debate', study, id.cell, id.repeat, id.sample)}${asked(query)}`;
export const toContrast = (study, first, second, query) => `#/${parts('compare', study, first, second)}${asked(query)}`;
export const toPair = (study, first, second, id, query) => `#/${parts('pair', study, first, second, id.repeat, id.sample)}${asked(query)}`;

// {page, study, cell, ..., query} of an address, with numbers for the names of studies; `unknown` is one that is not there.
export function readRoute(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?');
  let found;
  try {
    found = path.split('/').map(decodeURIComponent);
  } catch {
    found = [];
  }
  const [page, study, ...rest] = found;
  const route = { page: page || 'start', study: names.indexOf(study), query: Object.fromEntries(new URLSearchParams(query)) };
  const { with: other } = route.query;
  if (other) route.query.with = String(names.indexOf(other));
  route.unknown = [page && study, other].find((name) => name && !names.includes(name));
  if (page === 'cell') return { ...route, cell: rest[0] ?? '' };
  if (page === 'debate') return { ...route, id: { cell: rest[0] ?? '', repeat: Number(rest[1]) || 0, sample: rest[2] ?? '' } };
  if (page === 'compare') return { ...route, first: rest[0] ?? '', second: rest[1] ?? '' };
  if (page === 'pair') {
    return { ...route, first: rest[0] ?? '', second: rest[1] ?? '', id: { repeat: Number(rest[2]) || 0, sample: rest[3] ?? '' } };
  }
  return route;
}

// Change the query of the address without a step in the history.
export function replaceQuery(query) {
  const path = location.hash.split('?')[0] || '#/';
  const next = `${path}${asked(query)}`;
  if (next !== location.hash) {
    history.replaceState(null, '', next);
    dispatchEvent(new HashChangeEvent('hashchange'));
  }
}
