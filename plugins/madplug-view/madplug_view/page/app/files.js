// The studies of an export: chunks of data in files beside the page, or in the page itself.

const PAGE = 50;

const loaded = new Map();

// A chunk by its name. A page opened from disk may not fetch, but it may load a script, which calls `madplugChunk`.
function chunk(name) {
  if (!loaded.has(name)) {
    loaded.set(name, new Promise((resolve, reject) => {
      const inPage = document.getElementById(`chunk-${name}`);
      if (inPage) {
        resolve(JSON.parse(inPage.textContent));
        return;
      }
      waiting.set(name, resolve);
      const script = document.createElement('script');
      script.onerror = () => {
        loaded.delete(name);
        reject(new Error(`data/${name}.js is missing: keep the files of the export together`));
      };
      script.src = ours ? ours.createScriptURL(name) : `data/${name}.js`;
      document.head.append(script);
    }));
  }
  return loaded.get(name);
}

const waiting = new Map();

// The page's policy lets nothing become the address of a script but the name of a chunk.
const ours = globalThis.madplugExport && globalThis.trustedTypes?.createPolicy('madplug-chunks', {
  createScriptURL(name) {
    if (!/^[a-z0-9-]+$/.test(name)) throw new Error(`'${name}' is not the name of a chunk`);
    return `data/${name}.js`;
  },
});
globalThis.madplugChunk = (name, found) => waiting.get(name)?.(found);

const nameOf = (cell, repeat, sample) => JSON.stringify([cell, repeat, sample]);
const ORDER = {
  sample: () => 0, changes: (row) => row.changes, started: (row) => row.started, messages: (row) => row.messages, rounds: (row) => row.marks.length,
  calls: (row) => row.calls, tokens: (row) => row.tokens, cost: (row) => row.cost_usd ?? -1, seconds: (row) => row.seconds,
};

async function rowsOf(study, cell) {
  const { cells } = await chunk(`study-${study}`);
  return cells[cell] === undefined ? [] : chunk(cells[cell]);
}

function sorted(rows, order, descending) {
  const metric = order.startsWith('metric:') ? order.slice(7) : null;
  const by = metric ? (row) => row.metrics[metric] ?? -Number.MAX_VALUE : ORDER[order] ?? ORDER.sample;
  const way = descending ? -1 : 1;
  const known = rows.map((row, i) => [by(row), i, row]);
  return known.sort((a, b) => way * ((a[0] - b[0]) || (a[1] - b[1]))).map(([, , row]) => row);
}

async function rowsIn(study, search) {
  const every = Object.keys((await chunk(`study-${study}`)).cells);
  const cells = search.cell ? [search.cell] : every.filter((cell) => !search.cells?.length || search.cells.includes(cell));
  return (await Promise.all(cells.map((cell) => rowsOf(study, cell)))).flat();
}

const hasAll = (row, traits) => (traits ?? []).every((t) => row.traits.includes(t));
const inGroup = (row, group) => !group || row.group === group;

function tally(names) {
  const found = {};
  for (const name of names) found[name] = (found[name] ?? 0) + 1;
  return found;
}

export function fileData(facts) {
  const rowFor = async (study, id) => {
    const row = (await rowsOf(study, id.cell)).find((r) => r.repeat === id.repeat && r.sample === id.sample);
    if (!row) throw new Error(`the export has no debate on sample '${id.sample}' in cell '${id.cell}'`);
    return row;
  };
  const debates = async (study, id) => (await chunk((await rowFor(study, id)).chunk))[nameOf(id.cell, id.repeat, id.sample)];
  const scoreOf = (row, metric) => row.metrics[metric];
  return {
    live: false,
    searches: facts.searches,
    pages: async () => ({}),
    studies: async () => facts.studies,
    overview: async (study, metric) => {
      const found = await chunk(`study-${study}`);
      return { ...(found.overviews[metric] ?? found.overviews[found.metric ?? '']), charts: found.charts };
    },
    list: async () => facts.list,
    note: async (study, id) => (await rowFor(study, id)).note,
    async counts(study, search) {
      const rows = await rowsIn(study, search);
      const fits = (row) => hasAll(row, search.traits);
      const groups = tally(rows.filter(fits).map((row) => row.group));
      const noted = rows.filter((row) => row.note);
      return { whole: true, traits: tally(rows.filter((row) => fits(row) && inGroup(row, search.group)).flatMap((row) => row.traits)),
        groups: Object.keys(groups).length > 1 ? groups : {}, noted: noted.length, tags: tally(noted.flatMap((row) => row.note.tags)) };
    },
    async page(study, search) {
      let rows = sorted(await rowsIn(study, search), search.order ?? 'sample', search.descending);
      rows = rows.filter((row) => hasAll(row, search.traits) && inGroup(row, search.group)
        && (!search.tag || (row.note && (search.tag === '*' || row.note.tags.includes(search.tag)))));
      if (search.text) {
        const text = search.text.toLowerCase();
        rows = rows.filter((row) => row.search.includes(text));
      }
      if (search.other !== undefined) {
        const others = new Map((await rowsOf(search.with ?? study, search.other)).map((r) => [nameOf('', r.repeat, r.sample), r]));
        const fields = { both: [1, 1], first: [1, 0], second: [0, 1], neither: [0, 0] };
        rows = rows.filter((row) => {
          const other = others.get(nameOf('', row.repeat, row.sample));
          if (!other) return false;
          if (!search.field) return other.key !== row.key;
          const [one, two] = fields[search.field];
          return scoreOf(row, search.metric) === one && scoreOf(other, search.metric) === two;
        });
      }
      const from = Number(search.after ?? 0);
      const until = from + PAGE;
      return { rows: rows.slice(from, until), next: until < rows.length ? String(until) : null, scanned: rows.length };
    },
    debate: async (study, id) => (await debates(study, id)).debate,
    async calls(study, keys, id) {
      const { calls } = await debates(study, id);
      return keys.filter((key) => calls[key]).map((key) => calls[key]);
    },
    charts: (study) => chunk(`charts-${study}`),
    chartAddress: (study, chart) => `data:image/svg+xml;charset=utf-8,${encodeURIComponent(chart.svg)}`,
    text: () => Promise.reject(new Error('the export has only the beginning of this text')),
    async contrast(study, first, second, metric, other) {
      const scored = async (of, cell) => (await rowsOf(of, cell)).filter((row) => (scoreOf(row, metric) ?? null) !== null);
      const rows = await scored(study, first);
      const others = new Map((await scored(other ?? study, second)).map((r) => [nameOf('', r.repeat, r.sample), r]));
      const found = { metric, both: 0, first: 0, second: 0, neither: 0, left_out: 0, others: 0, unpaired: [rows.length, others.size], tests: false };
      const names = { '1,1': 'both', '1,0': 'first', '0,1': 'second', '0,0': 'neither' };
      for (const row of rows) {
        const other = others.get(nameOf('', row.repeat, row.sample));
        if (!other) continue;
        found.unpaired = found.unpaired.map((n) => n - 1);
        if (other.digest !== row.digest) {
          found.others += 1;
          continue;
        }
        found[names[[scoreOf(row, metric), scoreOf(other, metric)].join()] ?? 'left_out'] += 1;
      }
      return found;
    },
    follow: () => () => {},
  };
}
