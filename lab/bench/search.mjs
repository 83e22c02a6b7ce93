// How often the search finds a tool that answers a question, what it saves and what it takes: `npm run -w lab bench:search`. With
// `--part tuning` the questions are those on which the ranking may be tuned, and with `--misses` each missed one is printed.
// The other questions are for the figures only, so that no change of the ranking is fitted to them. `--peers` adds other searches from npm.
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { installPackage } from '../../scripts/packages.mjs';
import { bundle } from './inside-bundle.mjs';
import { describeMachine, table, writeSection } from './page.mjs';
import { openPeer, PEER } from './search-peer.mjs';
import { median } from './statistics.mjs';

const PAGE = fileURLToPath(new URL('../../docs/tools.md', import.meta.url));
const PROGRAM = fileURLToPath(new URL('search-program.mjs', import.meta.url));
const SMALL_SIZES = [30, 150];
const FIRST = [1, 5, 10];
const LARGE = 10_000;
const ROUNDS = 9;
/** With all tools, a tool that answers a question shall be among the first 1, 5 and 10. */
const AIMS = new Map([
  [1, 0.5],
  [5, 0.75],
  [10, 0.85],
]);

const { values } = parseArgs({
  options: {
    part: { type: 'string', default: 'figure' },
    misses: { type: 'boolean', default: false },
    peers: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
});
if (values.write && values.part !== 'figure') throw new Error('--write is for the part for the figures');

const folder = mkdtempSync(join(realpathSync(tmpdir()), 'trunkline-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const machine = describeMachine();
const checkout = fileURLToPath(new URL('../..', import.meta.url));
const { Catalog, EMPTY_LIST, findTools, createSearchTools, tokensOfList } = await import(
  await bundle(checkout, folder, PROGRAM)
);

const servers = readJson('search/tools.json');
const tools = servers.flatMap(({ key, tools: own }) => own.map((tool) => ({ ...tool, server: key })));
const parts = readJson('search/questions.json');
const all = Object.values(parts).flat();
const known = new Set(tools.map(idOf));
for (const { tools: answers } of all)
  for (const answer of answers) if (!known.has(answer)) throw new Error(`There is no tool ${answer}`);
const questions = parts[values.part];
if (questions === undefined) throw new Error(`--part takes ${Object.keys(parts)}, not ${values.part}`);

const ways = new Map([
  ['substring', substring],
  ['BM25 on descriptions', bm25],
  ...(values.peers
    ? [
        ['minisearch', await minisearch()],
        [PEER, (some) => openPeer(some, folder)],
      ]
    : []),
  ['Trunkline', trunkline],
]);
const rows = [];
const missed = [];
const aims = [];
const saved = [];
const sizes = [...SMALL_SIZES, tools.length];
for (const size of sizes) {
  const some = tools.slice(0, size);
  const there = new Set(some.map(idOf));
  const asked = questions.filter(({ tools: answers }) => answers.some((answer) => there.has(answer)));
  for (const [name, make] of ways) {
    const search = await make(some);
    const ranks = [];
    for (const { ask, tools: answers } of asked) {
      const at = (await search(ask, 10)).findIndex((found) => answers.includes(found));
      if (at < 0 && name === 'Trunkline' && size === tools.length) missed.push(ask);
      ranks.push(at < 0 ? Number.POSITIVE_INFINITY : at + 1);
    }
    await search.close?.();
    const shares = FIRST.map((first) => ranks.filter((rank) => rank <= first).length / ranks.length);
    rows.push([`${size} tools, ${asked.length} questions`, name, ...shares.map((share) => share.toFixed(2))]);
    if (name !== 'Trunkline' || size !== tools.length) continue;
    for (const [at, first] of FIRST.entries())
      aims.push([`met at ${first} of ${size} tools ≥ ${AIMS.get(first)}`, shares[at], AIMS.get(first), 'least']);
    if (values.misses) printMisses(asked, ranks, search);
  }
  saved.push(savedWith(some, asked));
}
const large = measureLarge();
aims.push([`a query over ${LARGE} tools ≤ 5 ms`, large.queryMs, 5, 'most']);
aims.push([`the index of ${LARGE} tools ≤ 150 ms`, large.indexMs, 150, 'most']);
aims.push([`the index of ${LARGE} tools ≤ 10 MiB`, large.mebibytes, 10, 'most']);

const judged = aims.map(([aim, value, bound, side]) => {
  const isMet = side === 'least' ? value >= bound : value <= bound;
  return `| ${aim} | ${value.toFixed(2)} | ${isMet ? 'met' : 'not met'} |`;
});
const report = [
  machine,
  table(['', 'Search', ...FIRST.map((first) => `met at ${first}`)], rows),
  table(['', 'whole list', 'list in search mode', 'one answer', 'saved', 'one search'], saved),
  `${LARGE} tools: the index takes ${large.indexMs.toFixed(0)} ms once and ${large.mebibytes.toFixed(1)} MiB, a search ${large.queryMs.toFixed(1)} ms (medians of ${ROUNDS}).`,
  'Aims:',
  ['| Aim | Value | |', '| --- | ---: | --- |', ...judged].join('\n'),
  `Not among the first 10 of ${tools.length} tools: ${missed.map((ask) => `*${ask}*`).join('; ')}.`,
].join('\n\n');
console.log(report);
if (values.write) writeSection(PAGE, 'search', report);

function readJson(file) {
  return JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8'));
}

function idOf({ server, name }) {
  return `${server}.${name}`;
}

/** Tools whose name or description has the whole question in it. */
function substring(some) {
  return (ask) => {
    const wanted = ask.toLowerCase();
    return some.filter(({ name, description }) => `${name} ${description}`.toLowerCase().includes(wanted)).map(idOf);
  };
}

/** BM25 with its usual parameters, over the words of descriptions as they are. */
function bm25(some) {
  const words = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const documents = some.map(({ description }) => words(description));
  const average = documents.reduce((sum, { length }) => sum + length, 0) / documents.length;
  const having = new Map();
  for (const document of documents) for (const word of new Set(document)) having.set(word, (having.get(word) ?? 0) + 1);
  return (ask) => {
    const scores = documents.map((document) =>
      words(ask).reduce((sum, word) => {
        const count = document.filter((each) => each === word).length;
        const df = having.get(word) ?? 0;
        const idf = Math.log(1 + (documents.length - df + 0.5) / (df + 0.5));
        return sum + (idf * count * 2.2) / (count + 1.2 * (0.25 + (0.75 * document.length) / average));
      }, 0),
    );
    const order = some.map((_, at) => at).filter((at) => scores[at] > 0);
    return order.sort((one, other) => scores[other] - scores[one]).map((at) => idOf(some[at]));
  };
}

/** A library for full-text search, with names that count eight times as much, and with prefixes and spelling mistakes. */
async function minisearch() {
  const { default: MiniSearch } = await import(join(await installPackage('minisearch', '7.2.0'), 'dist/es/index.js'));
  return (some) => {
    const index = new MiniSearch({
      fields: ['name', 'server', 'params', 'description'],
      searchOptions: { boost: { name: 8, server: 4, params: 2 }, prefix: true, fuzzy: 0.2 },
    });
    const textOf = ({ params }) => params.flat().join(' ');
    const words = (name) => name.replace(/[_-]/g, ' ').replace(/([a-z])([A-Z])/g, '$1 $2');
    index.addAll(some.map((tool, id) => ({ ...tool, id, name: words(tool.name), params: textOf(tool) })));
    return (ask) => index.search(ask).map(({ id }) => idOf(some[id]));
  };
}

function trunkline(some) {
  const visible = visibleOf(some);
  const ids = new Map(some.map((tool) => [exposedOf(tool), idOf(tool)]));
  return (ask, limit) => find(visible, ask, limit).map(({ name }) => ids.get(name));
}

function find(visible, query, limit = 8) {
  return findTools({ query, limit }, visible, { most: 50, usual: 8 }).structuredContent?.tools ?? [];
}

function exposedOf({ server, name }) {
  return `${server}__${name}`;
}

/** The tools as the search of a client gets them. */
function visibleOf(some) {
  const keys = [...new Set(some.map(({ server }) => server))];
  const parts = keys.map((key) => {
    const own = some.filter(({ server }) => server === key);
    const entries = own.map((tool) => ({ exposed: exposedOf(tool), original: tool.name, entry: entryOf(tool) }));
    return { key, prefix: key, list: { ...EMPTY_LIST, entries } };
  });
  const backend = { rules: {}, hasKnownLists: true, isUnavailable: false };
  const own = createSearchTools().map(({ name, entry }) => ({ name, entry }));
  return {
    catalogs: { tools: new Catalog('tools', parts, [], { hmac: () => '' }, own) },
    backends: new Map(keys.map((key) => [key, { ...backend, key }])),
  };
}

function entryOf(tool) {
  const { title, description, params } = tool;
  const properties = Object.fromEntries(params.map(([name, text]) => [name, { type: 'string', description: text }]));
  const definition = { name: exposedOf(tool), title, description, inputSchema: { type: 'object', properties } };
  return new TextEncoder().encode(JSON.stringify(definition));
}

/** Tokens of the whole list, with the definitions as the servers sent them, and of what a client in search mode reads. */
function savedWith(some, asked) {
  const visible = visibleOf(some);
  const whole = Math.ceil(some.reduce((sum, { bytes }) => sum + bytes + 1, 1) / 4);
  const short = tokensOfList(visible.catalogs.tools.shownEntries(true));
  const answers = asked.map(({ ask }) => {
    const { content } = findTools({ query: ask }, visible, { most: 50, usual: 8 });
    return Math.ceil(Buffer.byteLength(content[0].text) / 4);
  });
  const answer = median(answers);
  const times = asked.map(({ ask }) => timed(() => find(visible, ask)));
  const share = Math.round((100 * (whole - short - answer)) / whole);
  return [
    `${some.length} tools`,
    `${whole} tokens`,
    `${short}`,
    `${answer}`,
    `${share} %`,
    `${median(times).toFixed(2)} ms`,
  ];
}

/** The processor time, which another program that keeps the machine busy hardly changes. In milliseconds. */
function timed(work) {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

function measureLarge() {
  const many = Array.from({ length: LARGE }, (_, at) => {
    const tool = tools[at % tools.length];
    const round = Math.floor(at / tools.length);
    return { ...tool, server: `${tool.server}${round}`, name: round === 0 ? tool.name : `${tool.name}_v${round}` };
  });
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  const used = () => {
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const index = [];
  const query = [];
  const sizes = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const visible = visibleOf(many);
    // The names of the tools are in the list before there is a search.
    void visible.catalogs.tools.size;
    const before = used();
    index.push(timed(() => find(visible, 'anything')));
    sizes.push((used() - before) / 1024 ** 2);
    const asked = questions.slice(0, 50);
    query.push(median(asked.map(({ ask }) => timed(() => find(visible, ask)))));
  }
  return { indexMs: median(index), queryMs: median(query), mebibytes: median(sizes) };
}

function printMisses(asked, ranks, search) {
  for (const [at, { ask, tools: answers }] of asked.entries()) {
    if (ranks[at] <= 5) continue;
    console.log(`${ranks[at]}  ${ask}\n     wanted ${answers.join(', ')}\n     found  ${search(ask, 6).join(', ')}`);
  }
}
