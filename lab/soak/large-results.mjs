import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { HubPlace } from './hub-place.mjs';
import { randomFrom } from './random.mjs';
import { largeText } from './servers/large-texts.mjs';
import { until } from './wait.mjs';

const SERVER = fileURLToPath(new URL('./servers/large-texts.mjs', import.meta.url));
const KIB = 1024;
const MIB = 1024 * KIB;
/** Clients that read some of their results as a whole, and clients that never do. */
const [READERS, OTHERS] = [4, 4];
const READ_EVERY = 4;
const LIMITS = { max: '100kB', maxBinary: '100kB' };
const MAX_SHOWN = 100_000;
/** Room for the rest of a cut answer beside the text. */
const NOTE_BYTES = 2 * KIB;
const MAX_KEPT_BYTES = 128 * MIB;
/** Growth by the encoding. */
const BASE64 = 4 / 3;
const MAX_WRITTEN_BYTES = 64 * KIB;
const SAMPLE_MS = 50;
const LOOK_MS = 500;
const GONE_WITHIN_MS = 10_000;

/** Clients of one hub call a tool for results from 1 kB to 64 MiB at once. Most never read the rest. */
export const largeResults = {
  name: 'S-17',
  title: 'large results, of which most are never read',
  full: { results: 1_000, maxMib: 64 },
  short: { results: 120, maxMib: 4 },
  run,
};

async function run({ results, maxMib, seed, folder }) {
  const random = randomFrom(seed);
  const entry = { command: process.execPath, args: [SERVER], results: LIMITS, maxFrame: '256MiB', concurrency: 64 };
  const place = new HubPlace(folder, { large: entry });
  let left = [];
  const seen = { calls: 0, cut: 0, read: 0, gone: 0, bytes: 0, wrong: [], kept: 0, keptMost: 0, resident: 0 };
  const uris = [];
  let facts;
  try {
    const watcher = place.attach();
    await watcher.client.initialize();
    await watcher.client.ask('tools/list');
    const clients = Array.from({ length: READERS + OTHERS }, () => place.attach());
    await Promise.all(clients.map(({ client }) => client.initialize()));
    const [hub] = await place.hubs();
    const before = { resident: residentOf(hub), disk: sizeOf(place.folder) };
    const sampling = setInterval(() => {
      seen.resident = Math.max(seen.resident, residentOf(hub));
    }, SAMPLE_MS);
    const looking = setInterval(() => void keptOf(watcher), LOOK_MS);
    const calls = Array.from({ length: results }, (_, nonce) => {
      return { nonce, bytes: Math.round(KIB * (maxMib * KIB) ** random()), isBinary: random() < 0.2 };
    });
    await Promise.all(
      clients.map((each, at) => callAll(each.client, { calls, isReader: at < READERS, random, uris, seen })),
    );
    seen.kept = await keptOf(watcher);
    for (const { uri, client } of uris.slice(-READERS)) await cross(clients, { uri, client, seen });
    for (const timer of [sampling, looking]) clearInterval(timer);
    for (const { process: child } of clients) child.stdin.end();
    const isGone = await until(async () => (await keptOf(watcher)) === 0, GONE_WITHIN_MS);
    facts = { before, after: { resident: residentOf(hub), disk: sizeOf(place.folder) }, isGone };
  } finally {
    left = await place.end();
  }
  const { before, after, isGone } = facts;
  const written = after.disk - before.disk;
  const room = before.resident + MAX_KEPT_BYTES + (READERS + OTHERS) * maxMib * MIB * BASE64;
  return {
    facts: [
      ['clients, at once', String(READERS + OTHERS)],
      ['results, texts and images', `${seen.calls}, ${mib(seen.bytes)} together`],
      ['cut or replaced', String(seen.cut)],
      ['read as a whole, forgotten before', `${seen.read}, ${seen.gone}`],
      [
        'resident memory of the hub: before, at most, after',
        [before.resident, seen.resident, after.resident].map(mib).join(', '),
      ],
      ['kept at the end of the calls', mib(seen.kept)],
    ],
    targets: [
      target(
        'every answer is that of its call, and within its limit',
        seen.wrong.length,
        seen.wrong.length === 0,
        seen.wrong,
      ),
      target(`kept ≤ ${mib(MAX_KEPT_BYTES)} at each look`, mib(seen.keptMost), seen.keptMost <= MAX_KEPT_BYTES),
      target(
        `resident memory ≤ ${mib(room)}: as before, what may be kept, and the largest answer of each client`,
        mib(seen.resident),
        seen.resident <= room,
      ),
      target('nothing kept when the clients have left', isGone ? 'nothing' : 'something', isGone),
      target(
        `written to disk ≤ ${MAX_WRITTEN_BYTES / KIB} KiB, for lists`,
        `${written} bytes`,
        written <= MAX_WRITTEN_BYTES,
      ),
      target('no process left', String(left.length), left.length === 0),
    ],
  };

  async function keptOf(watcher) {
    const { structuredContent } = await watcher.client.ask('tools/call', { name: 'trunkline__status', arguments: {} });
    const { bytes = 0 } = structuredContent.keptResults ?? {};
    seen.keptMost = Math.max(seen.keptMost, bytes);
    return bytes;
  }
}

/** Calls until no call is left, and looks at each answer. */
async function callAll(client, { calls, isReader, random, uris, seen }) {
  for (let call = calls.pop(); call !== undefined; call = calls.pop()) {
    const whole = largeText(call.nonce, call.bytes);
    seen.calls += 1;
    seen.bytes += Buffer.byteLength(whole);
    const { content } = await client.ask('tools/call', { name: 'large__text', arguments: call });
    const link = content.find(({ type }) => type === 'resource_link');
    const wrong = link === undefined ? faultOfWhole(content, call, whole) : faultOfCut(content, call, whole);
    if (wrong !== undefined) seen.wrong.push(`${call.nonce}: ${wrong}`);
    if (link === undefined) continue;
    seen.cut += 1;
    uris.push({ uri: link.uri, client });
    if (!isReader || random() > 1 / READ_EVERY) continue;
    const contents = await client.ask('resources/read', { uri: link.uri }).then(
      (answer) => answer.contents,
      () => undefined,
    );
    if (contents === undefined) seen.gone += 1;
    else if (textOf(contents[0]) === whole) seen.read += 1;
    else seen.wrong.push(`${call.nonce}: another whole`);
  }
}

function textOf({ text, blob }) {
  return text ?? Buffer.from(blob, 'base64').toString();
}

function faultOfWhole([block], { isBinary }, whole) {
  if (Buffer.byteLength(whole) > MAX_SHOWN + KIB) return 'not cut';
  return (isBinary ? textOf({ blob: block.data }) : block.text) === whole ? undefined : 'another text';
}

function faultOfCut(content, { isBinary }, whole) {
  if (Buffer.byteLength(JSON.stringify(content)) > 2 * MAX_SHOWN + NOTE_BYTES) return 'cut too long';
  if (isBinary) return content[0].size === Buffer.byteLength(whole) ? undefined : 'another size';
  const [head, tail] = content[0].text.split(/\n\n\[Trunkline left out [^\]]*\]\n\n/);
  return tail !== undefined && whole.startsWith(head) && whole.endsWith(tail) ? undefined : 'another text';
}

/** Clients that did not get a result ask for it. */
async function cross(clients, { uri, client: owner, seen }) {
  for (const { client } of clients) {
    const isRead =
      client === owner ||
      (await client.ask('resources/read', { uri }).then(
        () => true,
        () => false,
      ));
    if (client !== owner && isRead) seen.wrong.push(`${uri}: read by another client`);
  }
}

function target(text, measured, isMet, faults = []) {
  return { target: text, measured: [measured, ...faults.slice(0, 3)].join('; '), isMet };
}

function residentOf(pid) {
  const [, kib] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) * KIB;
}

/** Bytes of all files of a folder but the logs. */
function sizeOf(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
  const sizes = files
    .filter(({ name }) => !name.endsWith('.log'))
    .map(({ parentPath, name }) => statSync(join(parentPath, name)).size);
  return sizes.reduce((sum, size) => sum + size, 0);
}

function mib(bytes) {
  return `${(bytes / MIB).toFixed(1)} MiB`;
}
