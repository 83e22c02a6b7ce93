// The gateway in memory, with servers that the test plays, behind a real HTTP transport on a free port.
import { onTestFinished } from 'vitest';
import { createEraChooser, createPlatform } from '../../../src/app/platform.js';
import type { HttpUsers } from '../../../src/downstream/http/caller.js';
import { createHttpClients } from '../../../src/downstream/http/http-client.js';
import type { HttpRoute } from '../../../src/downstream/http/http-route.js';
import { type HttpTransport, openHttpTransport } from '../../../src/downstream/http/server.js';
import type { SessionRecords } from '../../../src/downstream/http/session-records.js';
import type { EventBus } from '../../../src/host/observe/events/events.js';
import type { MessageFeed } from '../../../src/wire/io/message-feed.js';
import { type GatewayScript, scriptGateway } from '../../support/scripted-gateway.js';
import { DEFAULT_LIMITS, idsOf, TOKEN } from './serving.js';

export interface ServedGateway extends Omit<ReturnType<typeof scriptGateway>, 'events'> {
  readonly events: EventBus;
  readonly messages: MessageFeed;
  /** Such as `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly transport: HttpTransport;
}

interface ServedAt {
  readonly port?: number;
  /** Paths besides those of MCP. */
  readonly routes?: readonly HttpRoute[];
  readonly allowedHosts?: readonly string[];
}

/** Serves the scripted servers over HTTP until the test ends. All of them have started. */
export async function serveGateway(
  script: GatewayScript,
  users?: HttpUsers,
  records?: SessionRecords,
  { port = 0, routes, allowedHosts = [] }: ServedAt = {},
): Promise<ServedGateway> {
  const { instance = 'aaaaaaaaaa' } = script;
  const scripted = scriptGateway(script);
  const { clock, gateway, events } = scripted;
  const platform = { ...createPlatform(), clock };
  const transport = await openHttpTransport({
    ...platform,
    events,
    core: createHttpClients({
      ...platform,
      chooseEra: createEraChooser(platform, gateway, { name: 'trunkline', version: '1' }),
      hasServer: (key) => gateway.pool.has(key),
      hasView: (name) => script.views?.views.some((view) => view.name === name) ?? false,
      isReady: () => true,
      endSubscriptions: () => gateway.endSubscriptions(),
      principals: () => gateway.pool.principals,
      endKept: (principal) => gateway.pool.endKept(principal),
    }),
    bind: {
      ...{ host: '127.0.0.1', port, tokens: [TOKEN], noAuth: false },
      ...{ allowedHosts, allowedOrigins: [] },
    },
    users,
    routes,
    records,
    limits: DEFAULT_LIMITS,
    ids: idsOf(instance),
  });
  onTestFinished(() => transport.close());
  gateway.start();
  await scripted.startAll();
  return { ...scripted, messages: platform.messages, url: transport.url, transport };
}
