// Where studies come from: the server, or the files of an export (see files.js). Both answer the same questions.

import { fileData } from './files.js';
import { knowStudies } from './routes.js';

const ROOT = 'api/studies';
const CALLS = 50; // calls of one question

async function get(path, query = {}, more = {}) {
  const kept = Object.entries(query).filter(([, v]) => v !== undefined && v !== null && v !== '' && v !== false);
  const answer = await fetch(`${ROOT}${path}${kept.length ? `?${new URLSearchParams(kept)}` : ''}`, more);
  const found = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) throw new Error(found.error ?? `the server answered ${answer.status}`);
  return found;
}

const asked = (search) => ({ ...search, traits: (search.traits ?? []).join(','), cells: search.cells && JSON.stringify(search.cells) });

const serverData = {
  live: true,
  searches: 'texts',
  pages: () => fetch('api/pages').then((answer) => answer.json()),
  studies: () => get(''),
  list: () => get('/list'),
  overview: (study, metric) => get(`/${study}`, { metric }),
  page: (study, search) => get(`/${study}/page`, asked(search)),
  counts: (study, search) => get(`/${study}/counts`, asked(search)),
  note: (study, id) => get(`/${study}/note`, id),
  keepNote: (study, id, note) => get(`/${study}/note`, id, { method: 'PUT', body: JSON.stringify(note) }),
  debate: (study, id) => get(`/${study}/debate`, id),
  async calls(study, keys) {
    const found = [];
    for (let i = 0; i < keys.length; i += CALLS) found.push(...await get(`/${study}/calls`, { keys: keys.slice(i, i + CALLS).join(',') }));
    return found;
  },
  text: (study, id, message, offset) => get(`/${study}/text`, { ...id, message, offset }),
  charts: (study) => get(`/${study}/charts`),
  chartAddress: (study, chart) => `${ROOT}/${study}/charts/${encodeURIComponent(chart.name)}.svg?${chart.at}`,
  contrast: (study, first, second, metric, other) => get(`/${study}/contrast`, { first, second, metric, with: other }),
  test: (study, first, second, metric, other) => get(`/${study}/test`, { first, second, metric, with: other }),

  // Calls `changed` with the debates that something was recorded of; returns a function that stops it.
  follow(study, changed) {
    const source = new EventSource(`${ROOT}/${study}/events`);
    source.addEventListener('change', (event) => changed(JSON.parse(event.data)));
    return () => source.close();
  },
};

export const data = globalThis.madplugExport ? fileData(globalThis.madplugExport) : serverData;

// The names of the studies, which links have.
export async function studyNames() {
  const found = await data.studies();
  knowStudies(found);
  return found;
}
