// The reader's own note and tags on a debate, kept in a file beside the study.

import { useState } from '../vendor/hooks/index.js';
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

function Form({ study, id, note }) {
  const [said, setSaid] = useState('');
  const save = (event) => {
    event.preventDefault();
    const { text, tags } = event.target.elements;
    data.keepNote(study, id, { text: text.value, tags: tags.value.split(',') }).then(
      () => setSaid('saved in notes.json beside the study'), (error) => setSaid(visible(error.message)));
  };
  return html`<form onSubmit=${save} onInput=${() => setSaid('')}><label><span>Tags</span> <input name="tags" placeholder="separated by commas" value=${(note?.tags ?? []).join(', ')} /></label>
    <label><span class="sr">Note</span><textarea name="text" rows="2" placeholder="A note on this debate">${note?.text ?? ''}</textarea></label>
    <p class="bar start"><button class="button">Save</button><span class="quiet small" role="status">${said}</span></p></form>`;
}
