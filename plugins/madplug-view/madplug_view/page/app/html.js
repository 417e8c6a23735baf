// Preact's elements, written as templates: html`<p class="note">${text}</p>`. Text is always text, never markup.

import { h } from '../vendor/preact/index.js';
import htm from '../vendor/htm/index.js';

export const html = htm.bind(h);
