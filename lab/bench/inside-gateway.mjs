import { createHash } from 'node:crypto';
import { Readable, Writable } from 'node:stream';
import { createEraChooser, createPlatform } from '../../src/app/platform.js';
import { openStdioTransport } from '../../src/downstream/stdio/stdio-transport.js';
import { createToolPolicy } from '../../src/gateway/catalog/tool-policy.js';
import { Gateway } from '../../src/gateway/gateway.js';
import { Backend } from '../../src/gateway/registry/backend.js';
import { createSeal } from '../../src/state/seal.js';
import { Bridge } from '../../src/upstream/channel/bridge.js';
import { legacyDialect } from '../../src/upstream/legacy/legacy-dialect.js';
import { SharedLimit } from '../../src/wire/io/shared-limit.js';
import { LineWriter } from '../../src/wire/io/streams/line-writer.js';
import { readInto } from '../../src/wire/io/streams/read-into.js';
import { InsideClient, InsideServer } from './inside-ends.mjs';
import { read } from './inside-reading.mjs';

const MIB = 1024 * 1024;
const KEY = 'tiny';

/** As when the configuration says nothing. */
const LIMITS = {
  timeoutMs: 60_000,
  maxTimeoutMs: 600_000,
  listTimeoutMs: 30_000,
  maxQueued: 64,
  maxWaitMs: 10_000,
};

/**
 * A client whose calls go through the gateway as it is put together for one client on a pipe and one server, which may
 * be given so many calls at once. Only the pipes and the supervision of a process are left out.
 */
export async function openInside(concurrency) {
  const platform = createPlatform();
  const { clock, scan, backpressure, unfinishedLines, bufferPool, internalErrors } = platform;
  platform.events.subscribe('internal.error', ({ error }) => console.error(error));
  const gateway = new Gateway({
    clock,
    servers: [{ key: KEY, sharing: 'profile' }],
    create: (key, id, profile, listenerFor) => createServer(platform, { key, id, profile, concurrency, listenerFor }),
    profileOfAll: { clientInfo: { name: 'trunkline', version: '1.0.0' }, capabilities: {} },
    idleStopMs: 600_000,
    settings: { ownTools: [], startupWaitMs: 10_000, maxInstructionsBytes: 8_192 },
    seals: { lasting: createSeal(), run: createSeal(), cursors: createSeal(), instance: 'aaaaaaaaaa' },
    onInternalError: internalErrors.onInternalError,
  });
  const input = new Readable({ read: () => {} });
  const client = new InsideClient(`${KEY}__echo`, (chunk) => input.push(chunk));
  openStdioTransport({
    read: (reader) => readInto(input, reader),
    output: new Pipe((chunk) => client.receive(chunk)),
    backpressure,
    maxLineBytes: 64 * MIB,
    unfinishedLines,
    bufferPool,
    clock,
    scan,
    chooseEra: createEraChooser(platform, gateway, { name: 'trunkline', version: '1.0.0' }),
    principal: 'local',
    onInternalError: internalErrors.onInternalError,
    onEnd: () => gateway.close(),
  });
  gateway.start();
  await client.open();
  return client;
}

/** A client whose calls go to the server at once: what of the time is none of the gateway's. */
export function openAlone() {
  const server = new InsideServer((chunk) => client.receive(chunk));
  const client = new InsideClient('echo', (chunk) => server.receive(chunk));
  return client;
}

function createServer(
  { clock, scan, unfinishedLines, bufferPool, events, internalErrors },
  { key, id, profile, concurrency, listenerFor },
) {
  const { onInternalError } = internalErrors;
  const backend = new Backend({
    key,
    id,
    prefix: key,
    clock,
    limits: { ...LIMITS, concurrency },
    waiting: new SharedLimit(1024),
    policy: createToolPolicy({ deny: [] }),
    answers: createToolPolicy({ allow: [], deny: [] }),
    isTrusted: false,
    sha256: (text) => createHash('sha256').update(text).digest('hex'),
    isMisconfigured: false,
    demandStart: () => {},
    retryInMs: () => undefined,
    listenerFor,
    events,
    onInternalError,
  });
  const server = new InsideServer((answers) => read(answers, reader));
  const bridge = new Bridge({
    clock,
    scan,
    output: new LineWriter(new Pipe((chunk) => server.receive(chunk))),
    maxFrameBytes: 64 * MIB,
    maxUnwrittenBytes: 4 * MIB,
    unfinishedLines,
    bufferPool,
    events: {
      request: (request) => legacyDialect.answer(request),
      notification: (notification) => backend.notification(notification),
      junk: (line) => onInternalError(new Error(`No message: ${Buffer.from(line)}`)),
      silent: () => {},
      violated: () => {},
      fault: onInternalError,
    },
  });
  const reader = bridge.open();
  const start = async () => {
    backend.stateChanged('starting');
    const options = { generation: 1, profile: await profile, timeoutMs: 60_000 };
    const outcome = await legacyDialect.open(bridge, options);
    if (outcome.kind === 'failed') throw new Error(outcome.reason);
    await backend.loadLists(outcome.connection);
    backend.attach(outcome.connection);
    const [failure] = backend.listFailures;
    if (failure !== undefined) throw new Error(failure.reason);
    backend.stateChanged('ready');
  };
  return { backend, start: () => void start(), end: async () => bridge.close('stopped') };
}

/** A pipe without a kernel: what was written in one turn of the event loop is read in the next, in fresh memory. */
class Pipe extends Writable {
  #pieces = [];
  #read;

  constructor(onRead) {
    super();
    this.#read = () => {
      const chunk = Buffer.concat(this.#pieces);
      this.#pieces = [];
      onRead(chunk);
    };
  }

  _write(piece, _, done) {
    if (this.#pieces.push(piece) === 1) setImmediate(this.#read);
    done();
  }
}
