// A client of revision 2026-07-28 with subscriptions, and servers that the test plays.
import { type GatewayScript, offering, type ScriptedClient, scriptGateway } from '../../support/scripted-gateway.js';
import type { ScriptedPeer } from '../../support/scripted-peer.js';
import { flush, type Message } from '../../support/wire.js';

export const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';
export const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
export const UPDATED = 'notifications/resources/updated';
export const TOOLS_CHANGED = 'notifications/tools/list_changed';

export const URI = 'x://a/1';
export const OTHER = 'x://a/2';

export type Filter = Message;

/** The gateway with a server `a`, whose resources can be subscribed to, and a server `b`. */
export async function listening(servers: GatewayScript['servers'] = {}) {
  const offered = offering({ resources: [URI, OTHER, 'x://a/refused'] });
  const lists: Record<string, Message> = { ...offered.lists, 'tools/list': toolsNamed('one') };
  const world = scriptGateway({
    servers: {
      a: { ...offered, lists },
      b: offering({ resources: ['x://b/1'] }),
      ...servers,
    },
  });
  await world.startAll();
  await flush();
  /** Lets time pass, with everything that follows. */
  const pass = async (ms: number) => {
    world.clock.advance(ms);
    await flush();
    world.clock.advance(0);
  };
  /** Gives the server `a` other tools, and announces the change. */
  const changeTools = async (...names: string[]) => {
    lists['tools/list'] = toolsNamed(...names);
    world.server('a').child.say({ jsonrpc: '2.0', method: TOOLS_CHANGED });
    await pass(0);
  };
  return { ...world, pass, changeTools, ...playing(world) };
}

function toolsNamed(...names: string[]): Message {
  return { tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })) };
}

function playing({ server }: Pick<ReturnType<typeof scriptGateway>, 'server'>) {
  const listen = (client: ScriptedClient, id: number | string, notifications: Filter) =>
    client.modernRequest(id, 'subscriptions/listen', { notifications });
  /** Opens a subscription. The server `a` agrees to its resources. */
  const opened = async (client: ScriptedClient, id: number | string, notifications: Filter): Promise<Message> => {
    listen(client, id, notifications);
    await agree();
    return client.received.take()[0] ?? {};
  };
  /** Number of lines of each process that are answered. */
  const answered = new WeakMap<ScriptedPeer, number>();
  /** Lets a process answer all unanswered requests about subscriptions. */
  const agree = async (answer: Message = { result: {} }, of = 'a') => {
    const { child } = server(of);
    for (let at = answered.get(child) ?? 0; at < child.received.lines.length; at += 1) {
      answered.set(child, at + 1);
      const { id, method } = JSON.parse(child.received.lines[at] ?? '');
      if (!isAboutSubscriptions(method)) continue;
      child.say({ jsonrpc: '2.0', id, ...answer });
      await flush();
    }
  };
  /** Requests about subscriptions that a process has received. */
  const heard = (of = 'a') =>
    server(of)
      .child.received.messages.filter(({ method }) => isAboutSubscriptions(method))
      .map(({ method, params }) => `${method.slice('resources/'.length)} ${params.uri}`);
  const update = (uri: string, key = 'a', params: Message = {}) =>
    server(key).child.say({ jsonrpc: '2.0', method: UPDATED, params: { uri, ...params } });
  return { listen, opened, agree, heard, update };
}

function isAboutSubscriptions(method: string | undefined): boolean {
  return method === 'resources/subscribe' || method === 'resources/unsubscribe';
}

/** Messages that the client received since the last call, each as its subscription's id, its method and its URI. */
export function notified(client: ScriptedClient): unknown[] {
  return client.received.take().map(({ id, method, params, result }) => {
    if (method === undefined) return { id, result };
    return [params?._meta?.[SUBSCRIPTION_ID], method, ...(params?.uri === undefined ? [] : [params.uri])];
  });
}
