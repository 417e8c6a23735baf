// The program of the page: a form and the earlier questions, or one debate.

import { render } from '../../vendor/preact/index.js';
import { useEffect, useErrorBoundary, useState } from '../../vendor/hooks/index.js';
import { html } from '../../app/html.js';
import { Problem } from '../../app/parts.js';
import { Council } from './council.js';
import { Desk } from './desk.js';

function Program() {
  const [hash, setHash] = useState(location.hash);
  const [failure] = useErrorBoundary((error) => console.error(error));
  useEffect(() => {
    const changed = () => { setHash(location.hash); scrollTo(0, 0); };
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  if (failure) return html`<${Problem} error=${failure} />`;
  const [path, query] = hash.replace(/^#\/?/, '').split('?');
  return path ? html`<${Council} key=${path} id=${decodeURIComponent(path)} />`
    : html`<${Desk} key=${query ?? ''} follow=${new URLSearchParams(query).get('follow')} />`;
}

const root = document.getElementById('app');
root.textContent = '';
render(html`<${Program} />`, root);
