// The program of the page: shows what the address names.

import { render } from '../vendor/preact/index.js';
import { useEffect, useErrorBoundary, useState } from '../vendor/hooks/index.js';
import { CellPage } from './cell.js';
import { ContrastPage, PairPage } from './compare.js';
import { DebatePage } from './debate.js';
import { html } from './html.js';
import { Problem } from './parts.js';
import { readRoute } from './routes.js';
import { StartPage } from './studies.js';
import { StudyPage } from './study.js';

const PAGES = { start: StartPage, study: StudyPage, cell: CellPage, debate: DebatePage, compare: ContrastPage, pair: PairPage };

function Program() {
  const [route, setRoute] = useState(readRoute(location.hash));
  const [failure] = useErrorBoundary((error) => console.error(error));
  const path = location.hash.split('?')[0];
  useEffect(() => {
    const changed = () => setRoute(readRoute(location.hash));
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  useEffect(() => { scrollTo(0, 0); }, [path]);
  if (failure) return html`<${Problem} error=${failure} />`;
  const Page = PAGES[route.page];
  if (!Page) return html`<${Problem} error="There is no such page." />`;
  return html`<${Page} ...${route} key=${path} />`;
}

const { start } = globalThis.madplugExport ?? {};
if (start && !location.hash) history.replaceState(null, '', start); // an export of one sample opens on it
const root = document.getElementById('app');
root.textContent = '';
render(html`<${Program} />`, root);
