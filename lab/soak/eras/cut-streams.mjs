import { fileURLToPath } from 'node:url';
import { Gateway } from '../gateway.mjs';
import { until } from '../wait.mjs';

const CUTS = fileURLToPath(new URL('../servers/cuts-streams.mjs', import.meta.url));
const URI = 'soak:///version';
const CUT_MS = 1_000;
/** The pauses before a stream is opened again double from one second on. */
const SEEN_WITHIN_MS = 180_000;
const MAX_GROWTH_MIB = 1;
const MIB = 1024 * 1024;
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'soak', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** A server that ends its streams of changes; the client learns of every change all the same. */
export async function cutStreams({ folder, cuts }) {
  const gateway = new Gateway(folder, {
    cuts: { command: process.execPath, args: [CUTS, String(CUT_MS), String(cuts)] },
  });
  const { client } = gateway;
  await gateway.open();
  const ask = (method, params) => client.ask(method, { _meta: META, ...params });
  const report = async () => JSON.parse((await ask('tools/call', { name: 'cuts__report' })).content[0].text);
  /** The versions that the client saw when it was told to look. */
  const seen = { tools: new Set(), resource: new Set() };
  const looks = {
    'notifications/tools/list_changed': async () => {
      const { tools } = await ask('tools/list');
      seen.tools.add(versionOf(tools.find(({ name }) => name === 'cuts__report').description));
    },
    'notifications/resources/updated': async () => {
      const { contents } = await ask('resources/read', { uri: URI });
      seen.resource.add(versionOf(contents[0].text));
    },
  };
  client.onNotification = ({ method }) => void looks[method]?.();
  const startedAt = performance.now();
  const wishes = { toolsListChanged: true, resourceSubscriptions: [URI] };
  const listen = client.request('subscriptions/listen', { _meta: META, notifications: wishes }, () => {});
  const isSeenUpTo = (version) =>
    until(() => seen.tools.has(version) && seen.resource.has(version), SEEN_WITHIN_MS, 100);
  // Whatever the first stream and the first cut need is loaded.
  await isSeenUpTo(2);
  const before = await gateway.held();
  const last = 2 * cuts;
  const isSeen = await isSeenUpTo(last);
  const elapsedMs = performance.now() - startedAt;
  const during = await report();
  // Both eras are used on this pipe: a notification says which one it belongs to.
  client.cancel(listen, { _meta: META });
  await until(async () => (await report()).opened > during.opened, SEEN_WITHIN_MS, 100);
  const after = await report();
  const held = await gateway.held();
  const { faults } = client;
  const end = await gateway.close();
  const growth = (held.heapUsed - before.heapUsed) / MIB;
  return {
    facts: [
      ['streams cut', `${during.cut} in ${(elapsedMs / 1000).toFixed(0)} s`],
      ['streams opened', String(during.opened)],
      [
        'versions of the server that the client saw',
        `${seen.tools.size} of the tools, ${seen.resource.size} of the resource`,
      ],
    ],
    targets: [
      {
        target: `the client sees the last of ${last} changes, which happened without a stream`,
        measured: `tools ${Math.max(...seen.tools)}, resource ${Math.max(...seen.resource)}`,
        isMet: isSeen && during.version === last,
      },
      {
        target: 'one stream open afterwards; two at most, while one takes the place of another',
        measured: `${during.open}, and ${after.open} without a subscriber; ${after.most} at most`,
        isMet: during.open === 1 && after.open === 1 && after.most <= 2,
      },
      {
        target: `timers, descriptors, listeners as after the first cut: ${figuresOf(before)}`,
        measured: figuresOf(held),
        isMet:
          timersOf(held) <= timersOf(before) &&
          held.descriptors === before.descriptors &&
          held.listeners === before.listeners,
      },
      {
        target: `heap ≤ ${MAX_GROWTH_MIB} MiB more`,
        measured: `${growth.toFixed(2)} MiB`,
        isMet: growth <= MAX_GROWTH_MIB,
      },
      {
        target: 'no fault of the gateway',
        measured: [...faults, ...held.bugs, `exit ${end}`].join('; '),
        isMet: faults.length + held.bugs.length + end === 0,
      },
    ],
  };
}

function versionOf(text) {
  return Number(/^version (\d+)$/.exec(text)?.[1]);
}

function figuresOf(held) {
  return `${timersOf(held)}, ${held.descriptors}, ${held.listeners}`;
}

function timersOf({ resources }) {
  return resources.Timeout ?? 0;
}
