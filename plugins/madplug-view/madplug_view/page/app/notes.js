// The reader's own note and tags on a debate, kept in a file beside the study.

import { useEffect, useRef, useState } from '../vendor/hooks/index.js';
import { data } from './data.js';
import { brief, visible } from './format.js';
import { html } from './html.js';
import { Text, useAnswer } from './parts.js';

export function Notes({ study, id }) {
  const { value, loading } = useAnswer(() => data.note(study, id), [study, id.cell, id.repeat, id.sample]);
  if (loading || (!data.live && !value)) return null;
  return html`<section class="notes" aria-label="My notes"><h2>My notes</h2>${
    data.live ? html`<${Form} study=${study} id=${id} note=${value} />` : html`<${Tags} tags=${value.tags} /><${Text} text=${value.text} />`}</section>`;
}

const Tags = ({ tags }) => html`<p class="badges">${tags.map((tag) => html`<span class="badge tag">${brief(tag, 60)}</span>`)}</p>`;

// What is typed is state: a field whose value comes from the answer alone is set back whenever the page is drawn again.
// Who leaves the debate without saving loses nothing; a page that is closed or loaded again has to be asked about.
function Form({ study, id, note }) {
  const [written, setWritten] = useState({ tags: (note?.tags ?? []).join(', '), text: note?.text ?? '' });
  const [said, setSaid] = useState('');
  const unsaved = useRef(null);
  const write = (event) => {
    setSaid('');
    unsaved.current = { ...written, [event.target.name]: event.target.value };
    setWritten(unsaved.current);
  };
  const keep = () => {
    const sent = unsaved.current ?? written;
    return data.keepNote(study, id, { text: sent.text, tags: sent.tags.split(',') }).then(() => {
      if (unsaved.current === sent) unsaved.current = null;
    });
  };
  const save = (event) => {
    event.preventDefault();
    keep().then(() => setSaid('saved in notes.json beside the study'), (error) => setSaid(visible(error.message)));
  };
  useEffect(() => {
    const ask = (event) => unsaved.current && event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => {
      removeEventListener('beforeunload', ask);
      if (unsaved.current) keep();
    };
  }, []);
  return html`<form onSubmit=${save} onInput=${write}><label><span>Tags</span> <input name="tags" placeholder="separated by commas" value=${written.tags} /></label>
    <label><span class="sr">Note</span><textarea name="text" rows="2" placeholder="A note on this debate" value=${written.text} /></label>
    <p class="bar start"><button class="button">Save</button><span class="quiet small" role="status">${said}</span></p></form>`;
}
