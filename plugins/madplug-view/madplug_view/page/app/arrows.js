// Arrows from what an agent was shown to what it said, drawn over the messages.

import { useLayoutEffect, useState } from '../vendor/hooks/index.js';
import { html } from './html.js';

export function Arrows({ board, message, visibleIds }) {
  const [drawn, setDrawn] = useState(null);
  useLayoutEffect(() => {
    if (!board.current || !message) {
      setDrawn(null);
      return undefined;
    }
    const draw = () => setDrawn(measure(board.current, message, visibleIds));
    const watch = new ResizeObserver(draw); // it also calls at once
    watch.observe(board.current);
    return () => watch.disconnect();
  }, [message?.id, visibleIds.size]);
  if (!drawn) return null;
  return html`<svg class="arrows" width=${drawn.width} height=${drawn.height} aria-hidden="true">
    <defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0l8 4l-8 4z" /></marker></defs>
    ${drawn.paths.map(([kind, d]) => html`<path class=${`arrow ${kind}`} d=${d} marker-end="url(#head)" />`)}</svg>`;
}

function measure(board, message, visibleIds) {
  const frame = board.getBoundingClientRect();
  const box = (id) => {
    const found = board.querySelector(`[data-id="${id}"]`)?.getBoundingClientRect();
    return found && { x: found.left - frame.left, y: found.top - frame.top, w: found.width, h: found.height };
  };
  const to = box(message.id);
  const paths = to ? message.seen.filter((id) => visibleIds.has(id) && id !== message.id).map((id) => {
    const from = box(id);
    if (!from) return null;
    const kind = message.altered.includes(id) ? 'changed' : '';
    const [x1, x2] = [from.x + from.w / 2, to.x + to.w / 2];
    const above = from.y + from.h <= to.y + 4;
    const [y1, y2] = above ? [from.y + from.h, to.y] : [from.y + 12, to.y + 12];
    const bend = Math.max(18, (y2 - y1) / 2);
    if (above) return [kind, `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`];
    if (Math.abs(from.y - to.y) < 4 && Math.abs(x2 - x1) > to.w * 1.5) { // over the cards between
      return [kind, `M${x1} ${from.y}C${x1} ${from.y - 24} ${x2} ${to.y - 24} ${x2} ${to.y}`];
    }
    const [a, b] = from.x < to.x ? [from.x + from.w, to.x] : [from.x, to.x + to.w];
    return [kind, `M${a} ${y1}L${b} ${y2}`];
  }).filter(Boolean) : [];
  return { width: board.scrollWidth, height: board.scrollHeight, paths };
}
