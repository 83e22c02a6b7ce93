// Sessions that continue at another gateway of a cluster: the built CLI, several times, and a real Redis.
import { once } from 'node:events';
import * as http from 'node:http';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EventReader } from '../downstream/http/event-reader.js';
import type { Message } from '../support/gateway-process.js';
import type { Running } from '../support/http-place.js';
import { ProcessCluster } from '../support/process-cluster.js';

const EVERYTHING = fileURLToPath(new URL('../../lab/conformance/servers/everything.mjs', import.meta.url));
const URI = 'test://watched-resource';

let place: ProcessCluster;

beforeEach(async () => {
  place = await ProcessCluster.open();
});

afterEach(async () => {
  await place.dispose();
});

const gateway = () => place.gateway({ all: place.server(EVERYTHING) });

/** Opens a session in which the client has subscribed to a resource and set a log level. */
async function subscribed(at: Running): Promise<{ 'mcp-session-id': string }> {
  const session = await place.initialize(at);
  const ask = async (method: string, params: object) =>
    ((await (await place.post(at, { jsonrpc: '2.0', id: 2, method, params }, session)).json()) as Message).result;
  expect(await ask('resources/subscribe', { uri: URI })).toEqual({});
  expect(await ask('logging/setLevel', { level: 'error' })).toEqual({});
  return session;
}

describe('a session of a cluster', () => {
  it('F351: keeps its subscriptions when its gateway is killed, and is told to read the resources again', async () => {
    const [first, second] = [await gateway(), await gateway()];
    const session = await subscribed(first);
    first.process.kill('SIGKILL');
    await first.finished;
    const getting = http.get(second.url, { headers: place.headers(session) });
    const [response] = (await once(getting, 'response')) as [http.IncomingMessage];
    const events = new EventReader(response);
    const next = async (): Promise<Message> => JSON.parse((await events.next())?.data || '{}');
    let message = await next();
    while (message.method !== 'notifications/resources/updated') message = await next();
    expect(message.params).toEqual({ uri: URI });
    response.destroy();
  });
});
