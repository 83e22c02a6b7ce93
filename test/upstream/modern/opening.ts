import { legacyDialect } from '../../../src/upstream/legacy/legacy-dialect.js';
import { EraDialect } from '../../../src/upstream/modern/era-dialect.js';
import { ServerEra } from '../../../src/upstream/server-era.js';
import type { RequestHandler, RequestTimeouts } from '../../../src/upstream/upstream-connection.js';
import type { ClientProfile } from '../../../src/wire/mcp/handshake.js';
import { EnvelopeRequest } from '../../../src/wire/mcp/relayed-request.js';
import { flush, type Message, requestOf, scan } from '../../support/wire.js';
import { bridging, TIMEOUTS } from '../stdio/bridging.js';

export const PROFILE: ClientProfile = { clientInfo: { name: 'c', version: '1' }, capabilities: {} };
/** What each request to the server says about that client, as the end of an object. */
export const META =
  '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}';

/** A connection to a modern server that the test plays. What it was asked with is forgotten. */
export async function openModern({
  capabilities = {},
  profile = PROFILE,
}: {
  readonly capabilities?: Message;
  readonly profile?: ClientProfile;
} = {}) {
  const child = bridging({ maxUnwrittenBytes: 100_000 });
  const { output, requests, notifications } = child;
  const unfit: string[] = [];
  const dialect = new EraDialect({
    ...{ legacy: legacyDialect, clock: child.clock, scan },
    mintId: () => `minted-${++minted}`,
  });
  let minted = 0;
  const opened = dialect.open(child.bridge, {
    ...{ generation: 1, profile, timeoutMs: 60_000, era: new ServerEra('modern') },
    listener: {
      request: (request) => requests.push(request),
      notification: (notification) => notifications.push(notification),
      unfit: (reason) => unfit.push(reason),
    },
  });
  const result = { supportedVersions: ['2026-07-28'], capabilities, resultType: 'complete' };
  child.say({ jsonrpc: '2.0', id: 1, result });
  const outcome = await opened;
  if (outcome.kind === 'failed') throw new Error(outcome.reason);
  const { connection } = outcome;
  output.lines.shift();
  const say = async (...messages: (Message | string)[]) => {
    child.say(...messages);
    await flush();
  };
  const advance = async (ms: number) => {
    child.clock.advance(ms);
    await flush();
  };
  const send = (message: string | Message, handler: RequestHandler, timeouts: RequestTimeouts = TIMEOUTS) =>
    connection.send(new EnvelopeRequest(requestOf(message)), [], timeouts, handler);
  /** Answers the request that the server got last. */
  const answer = (reply: Message) => say({ jsonrpc: '2.0', id: output.last.id, result: reply });
  return { ...child, connection, unfit, say, advance, send, answer };
}
