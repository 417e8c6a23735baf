// One person's requests: each shown as a model would get it, and answered. A draft stays in the browser, and so does an
// answer until the study has it on record: whichever of the two ends meanwhile, nothing is lost.

import { render } from './vendor/preact/index.js';
import { useEffect, useRef, useState } from './vendor/hooks/index.js';
import { plural, visible, whole } from './app/format.js';
import { html } from './app/html.js';

const POLL = 1000; // milliseconds between two looks at what waits
const DRAFT = 'draft ';
const ANSWER = 'answer ';
const sending = new Set();

async function ask(path, more) {
  const answer = await fetch(`api/requests${path}`, more);
  if (answer.status === 401) throw new Error('This link has expired. Open the new one that the study has printed; your drafts are still here.');
  if (!answer.ok) throw Object.assign(new Error((await answer.json()).error), { status: answer.status });
  return answer.json();
}

const unsent = () => Object.keys(localStorage).filter((key) => key.startsWith(ANSWER)).map((key) => key.slice(ANSWER.length));

// Send an answer. Its copy is removed when the study says that it is on record.
async function send(id) {
  if (sending.has(id)) return;
  sending.add(id);
  try {
    await ask(`/${id}/answer`, { method: 'PUT', body: JSON.stringify({ text: localStorage.getItem(ANSWER + id) }) });
    localStorage.removeItem(ANSWER + id);
    localStorage.removeItem(DRAFT + id);
  } catch {
    // The study is not running, or does not ask this yet: it is sent again at the next look.
  } finally {
    sending.delete(id);
  }
}

function Program() {
  const [{ person, waiting, problem }, setFound] = useState({ waiting: [] });
  const [chosen, setChosen] = useState(null);
  const [, again] = useState(0);
  useEffect(() => {
    let timer;
    const look = async () => {
      unsent().forEach(send);
      try {
        setFound({ problem: '', ...await ask('') });
      } catch (error) {
        const told = error instanceof TypeError ? 'The study is not running. This page goes on when it is resumed.' : error.message;
        setFound((before) => ({ ...before, problem: told }));
      }
      timer = setTimeout(look, POLL);
    };
    look();
    return () => clearTimeout(timer);
  }, []);
  const kept = unsent();
  const open = waiting.filter((id) => !kept.includes(id));
  const id = open.includes(chosen) ? chosen : open[0];
  useEffect(() => { document.title = `${open.length ? `(${open.length}) ` : ''}${visible(person)}`; }, [person, open.length]);
  const answered = (text) => {
    localStorage.setItem(ANSWER + id, text);
    send(id).then(() => again(Date.now()));
    again(Date.now());
  };
  return html`<header class="bar"><h1>${visible(person)}</h1><p class="quiet" role="status">${
    open.length ? `${plural(open.length, 'request')} to answer` : 'Nothing to answer at the moment'}${
    kept.length ? `; ${plural(kept.length, 'answer')} not on record yet` : ''}</p></header>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${open.length > 1 && html`<nav class="bar start" aria-label="Requests">${open.map((one, i) => html`<button class="toggle"
      key=${one} aria-pressed=${one === id} onClick=${() => setChosen(one)}>${i + 1}</button>`)}</nav>`}
    ${id && html`<${OneRequest} key=${id} id=${id} running=${!problem} answered=${answered} />`}`;
}

function OneRequest({ id, running, answered }) {
  const [request, setRequest] = useState(null);
  const [text, setText] = useState(localStorage.getItem(DRAFT + id) ?? '');
  const [problem, setProblem] = useState('');
  const box = useRef(null);
  useEffect(() => {
    if (running && !request) ask(`/${id}`).then(setRequest, (error) => setProblem(error.message));
  }, [id, running]);
  const write = (draft) => {
    localStorage.setItem(DRAFT + id, draft);
    setText(draft);
  };
  const end = (line) => {
    const lines = text.trimEnd().split('\n');
    if (request.lines.includes(lines.at(-1))) lines.pop();
    write([...lines, line].join('\n').replace(/^\n+/, ''));
    box.current.focus({ preventScroll: true });
  };
  const submit = (event) => {
    event.preventDefault();
    answered(text);
  };
  if (!request) return html`<p class="loading">${problem || 'Loading…'}</p>`;
  const words = text.trim() ? text.trim().split(/\s+/).length : 0;
  return html`<main>${request.messages.map((message) => html`<${Sent} ...${message} />`)}
    ${request.form && !request.lines.length && html`<details><summary>The form of the reply</summary><pre class="text" tabindex="0">${
      visible(JSON.stringify(request.form, null, 2))}</pre></details>`}
    <form class="answer" onSubmit=${submit}><label for="reply">Your reply</label>
    <textarea id="reply" ref=${box} value=${text} onInput=${(event) => write(event.target.value)}></textarea>
    <p class="bar"><span class="bar start">${request.lines.map((line) => html`<button type="button" class="button"
      onClick=${() => end(line)}>${visible(line)}</button>`)}</span><span class="bar"><span class="quiet small">${whole(words)} ${
      words === 1 ? 'word' : 'words'}</span><button class="button send" disabled=${!text.trim()}>Send</button></span></p></form></main>`;
}

const ROLES = { system: 'Instructions', user: 'Request', assistant: 'You said' };

function Sent({ role, content }) {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  return html`<section class="sent ${role}"><h2 class="small quiet">${ROLES[role] ?? role}</h2>${parts.map((part) => (part.type === 'text'
    ? html`<p class="text" dir="auto">${visible(part.text)}</p>` : html`<${Picture} url=${part.image_url.url} />`))}</section>`;
}

// Nothing is loaded from another host: a picture that is elsewhere is shown as its address.
const Picture = ({ url }) => (url.startsWith('data:image/') ? html`<img src=${url} alt="A picture of the request" />`
  : html`<p class="quiet text">[picture: ${visible(url)}]</p>`);

const root = document.getElementById('app');
root.textContent = '';
render(html`<${Program} />`, root);
