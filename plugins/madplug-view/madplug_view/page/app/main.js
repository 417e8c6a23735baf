// The program of the page: shows what the address names.

import { render } from '../vendor/preact/index.js';
import { useEffect, useErrorBoundary, useState } from '../vendor/hooks/index.js';
import { CellPage } from './cell.js';
import { ContrastPage, PairPage } from './compare.js';
import { studyNames } from './data.js';
import { DebatePage } from './debate.js';
import { html } from './html.js';
import { Problem, useAnswer } from './parts.js';
import { readRoute } from './routes.js';
import { StartPage } from './studies.js';
import { StudyPage } from './study.js';

const PAGES = { start: StartPage, study: StudyPage, cell: CellPage, debate: DebatePage, compare: ContrastPage, pair: PairPage };

function Program() {
  const [hash, setHash] = useState(location.hash);
  const [count, setCount] = useState(0);
  const [failure] = useErrorBoundary((error) => console.error(error));
  const path = hash.split('?')[0];
  const { value: names, error, loading } = useAnswer(studyNames, [path, count]); // one may have begun meanwhile
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  useEffect(() => { scrollTo(0, 0); }, [path]);
  if (failure ?? error) return html`<${Problem} error=${failure ?? error} />`;
  const route = readRoute(hash);
  if (!names || (route.unknown && loading)) return html`<p class="loading">Loading…</p>`;
  const Page = PAGES[route.page];
  if (!Page) return html`<${Problem} error="There is no such page." />`;
  if (route.unknown) return html`<${Problem} error=${`There is no study '${route.unknown}' here.`} />`;
  return html`<${Page} ...${route} names=${names} count=${count} again=${() => setCount((n) => n + 1)} key=${path} />`;
}

const { start } = globalThis.madplugExport ?? {};
if (start && !location.hash) history.replaceState(null, '', start); // an export of one sample opens on it
const root = document.getElementById('app');
root.textContent = '';
render(html`<${Program} />`, root);
