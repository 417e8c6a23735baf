// A model's text as Markdown with LaTeX. Elements are made from tokens, never from markup, so that text stays text:
// HTML is shown as it was written, and links and images as their addresses.

import { createContext } from '../vendor/preact/index.js';
import { useContext, useLayoutEffect, useMemo, useRef } from '../vendor/hooks/index.js';
import Marked from '../vendor/marked/index.js';
import temml from '../vendor/temml/index.js';
import { visible } from './format.js';
import { html } from './html.js';
import { Grade, Text } from './parts.js';

const NO_MARKS = {};
const DEEP = 20; // levels of nesting from which on Markdown is shown as it was written

// How the reader wants texts: as they were written, and long ones in full.
export const Reading = createContext({ raw: false, expanded: false });

const BLOCK = /^ {0,3}(?:\\\[([^]{1,5000}?)\\\]|\$\$([^]{1,5000}?)\$\$|(\\begin\{([a-z]+\*?)\}[^]{1,5000}?\\end\{\4\}))[ \t]*(?:\n+|$)/;
const DISPLAY = /^(?:\\\[([^]{1,2000}?)\\\]|\$\$([^]{1,2000}?)\$\$)/;
// Between dollars as in pandoc, so that prices are no formulas: no space inside, and no digit after.
const INLINE = /^(?:\\\(([^]{1,2000}?)\\\)|\$(?!\s)((?:\\.|[^$\\\s]|[^\S\n](?!\$)){1,1000}?)\$(?!\d))/;

const math = (name, level, pattern, display, starts) => ({
  name, level, start: (source) => { const at = source.search(starts); return at < 0 ? undefined : at; },
  tokenizer(source) {
    const found = pattern.exec(source);
    return found ? { type: 'math', raw: found[0], display, text: found[1] ?? found[2] ?? found[3] } : undefined;
  },
});

const reader = new Marked({ gfm: true, breaks: true }).use({
  extensions: [math('block', 'block', BLOCK, true, /^ {0,3}(?:\\\[|\$\$|\\begin\{)/m),
    math('display', 'inline', DISPLAY, true, /\\\[|\$\$/), math('inline', 'inline', INLINE, false, /\\\(|\$/)],
  tokenizer: { // false: as usual; undefined: not at all
    def: () => undefined,
    emStrong: (source, _, before) => (/\w/.test(before) ? undefined : false), // 2*3*4 is a product
    del: (source) => (source.startsWith('~~') ? false : undefined),
  },
});

// marks: what tags mean that a plugin has written into messages, `{ verified: 'right' }`.
export function Rich({ text, inline = false, marks = NO_MARKS }) {
  const { raw } = useContext(Reading);
  const made = useMemo(() => (raw ? null : read(visible(text), inline, marks)), [text, raw, inline, marks]);
  if (!made) return inline ? html`<bdi>${visible(text)}</bdi>` : html`<${Text} text=${text} />`;
  return inline ? html`<bdi class="rich">${made}</bdi>` : html`<div class="text rich" dir="auto">${made}</div>`;
}

// The elements of a text, or null if it is to be shown as it was written.
function read(text, inline, marks) {
  try {
    return elements(inline ? reader.Lexer.lexInline(text, reader.defaults) : reader.lexer(text), 0, marks);
  } catch {
    return null;
  }
}

function elements(tokens, depth, marks) {
  if (depth > DEEP) throw new RangeError('too deep');
  const made = [];
  for (let i = 0; i < tokens.length; i += 1) {
    const name = /^<([a-z]+)>$/.exec(tokens[i].raw)?.[1];
    const end = Object.hasOwn(marks, name) ? tokens.findIndex((token, j) => j > i && token.raw === `</${name}>`) : -1;
    made.push(end < 0 ? element(tokens[i], depth + 1, marks) : html`<mark class=${`tag ${marks[name]}`} title=${name}><${Grade} right=${
      marks[name] === 'right'} /> <span class="sr">${name}: </span>${elements(tokens.slice(i + 1, end), depth + 1, marks)}</mark>`);
    i = Math.max(i, end);
  }
  return made;
}

function element(token, depth, marks) {
  const inner = () => (token.tokens ? elements(token.tokens, depth, marks) : token.text);
  switch (token.type) {
    case 'space': return null;
    case 'paragraph': return html`<p>${inner()}</p>`;
    case 'heading': return html`<p class="heading">${inner()}</p>`;
    case 'strong': return html`<strong>${inner()}</strong>`;
    case 'em': return html`<em>${inner()}</em>`;
    case 'del': return html`<del>${inner()}</del>`;
    case 'blockquote': return html`<blockquote>${inner()}</blockquote>`;
    case 'br': return html`<br />`;
    case 'hr': return html`<hr />`;
    case 'text': case 'escape': return inner();
    case 'codespan': return html`<code>${token.text}</code>`;
    case 'code': return html`<pre tabindex="0"><code>${token.text}</code></pre>`;
    case 'list': return list(token, depth, marks);
    case 'table': return table(token, depth, marks);
    case 'link': return token.text === token.href ? token.href : html`${inner()} <span class="quiet">(${token.href})</span>`;
    case 'image': return html`<span class="quiet">[image ${token.text}: ${token.href}]</span>`;
    case 'math': return html`<${Formula} source=${token.text} display=${token.display} raw=${token.raw} />`;
    default: return token.raw;
  }
}

function list(token, depth, marks) {
  const items = token.items.map((item) => html`<li>${item.task && (item.checked ? '☑ ' : '☐ ')}${elements(item.tokens, depth, marks)}</li>`);
  return token.ordered ? html`<ol start=${token.start}>${items}</ol>` : html`<ul>${items}</ul>`;
}

function table(token, depth, marks) {
  const cells = (row, tag) => html`<tr>${row.map((cell) => html`<${tag} class=${cell.align === 'right' ? 'n' : ''}>${elements(cell.tokens, depth, marks)}<//>`)}</tr>`;
  return html`<div class="wide" tabindex="0"><table><thead>${cells(token.header, 'th')}</thead><tbody>${token.rows.map((row) => cells(row, 'td'))}</tbody></table></div>`;
}

// A formula as MathML; one that cannot be read is shown as it was written.
function Formula({ source, display, raw }) {
  const box = useRef(null);
  useLayoutEffect(() => {
    try {
      temml.render(source, box.current, { displayMode: display, throwOnError: true, maxSize: [20, 20], maxExpand: 200,
        macros: { '\\pmb': '\\boldsymbol' } });
    } catch {
      box.current.textContent = raw;
    }
  }, [source, display]);
  return html`<span class=${display ? 'formula display' : 'formula'} tabindex=${display ? 0 : undefined} ref=${box}></span>`;
}
