// What the page asks of its server.

async function answered(reply) {
  const found = await reply.json().catch(() => ({ error: `the server answered ${reply.status}` }));
  if (!reply.ok) throw new Error(found?.error ?? `the server answered ${reply.status}`);
  return found;
}

export const get = (path) => fetch(`api/${path}`).then(answered);

// No form of another site can send this header.
export const post = (path, body) => fetch(`api/${path}`, {
  method: 'POST', headers: { 'content-type': 'application/json', 'x-madplug': 'ask' }, body: JSON.stringify(body ?? null),
}).then(answered);

export const exported = (id, kind) => `api/${encodeURIComponent(id)}/export.${kind}`;

// Calls `told(event, value)` with the state of a debate and what is being written, whenever it changes, until it has ended.
export function follow(id, told) {
  const source = new EventSource(`api/${encodeURIComponent(id)}/events`);
  for (const event of ['state', 'drafts']) source.addEventListener(event, (e) => told(event, JSON.parse(e.data)));
  source.addEventListener('end', () => source.close());
  source.onerror = () => { if (source.readyState === EventSource.CLOSED) told('lost'); };
  return () => source.close();
}
