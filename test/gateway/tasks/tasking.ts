import type { Sharing } from '../../../src/gateway/registry/server-instances.js';
import {
  type ScriptedClient,
  type ServerScript,
  startGateway,
  toolOf,
  type Who,
} from '../../support/scripted-gateway.js';
import type { ScriptedPeer } from '../../support/scripted-peer.js';
import { flush, type Message } from '../../support/wire.js';

export const RELATED = 'io.modelcontextprotocol/related-task';

/** Task capabilities of a server. */
const TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } };

/** Capabilities of a client that knows tasks and answers every server request. */
export const EVERYTHING = {
  sampling: {},
  elicitation: {},
  tasks: { list: {}, cancel: {}, requests: { sampling: { createMessage: {} }, elicitation: { create: {} } } },
};

export function taskServer(script: ServerScript = {}): ServerScript {
  const tools = [
    toolOf('slow', { execution: { taskSupport: 'optional' } }),
    toolOf('only', { execution: { taskSupport: 'required' } }),
    'quick',
  ];
  return { tools, hello: { capabilities: { tools: {}, tasks: TASKS } }, ...script };
}

/** Servers `a` and `b` with tasks, and clients with tasks. */
export async function tasking(sharing: Sharing = 'all', script: ServerScript = {}, instance = 'aaaaaaaaaa') {
  const servers = { a: taskServer({ sharing, ...script }), b: taskServer({ sharing }) };
  const world = await startGateway({ servers, instance });
  const handshake = (who: Who = {}, capabilities: Message = EVERYTHING, revision = '2025-11-25') =>
    world.connect(who).greet(revision, capabilities);
  return { ...world, handshake, child: world.server('a').child };
}

/** The same servers with one client. */
export async function withClient() {
  const world = await tasking();
  return { ...world, client: world.handshake() };
}

/** The same servers with two clients of one user. */
export async function withTwo() {
  const world = await tasking();
  return { ...world, one: world.handshake(), other: world.handshake() };
}

/** The same servers with a client that has made the task `t`. */
export async function withTask(members: Message = {}) {
  const world = await withClient();
  return { ...world, taskId: made(world.client, world.child, 't', members) };
}

/** Lets the client make a task with the server's id `original`. Returns the client's id of the task. */
export function made(client: ScriptedClient, child: ScriptedPeer, original: string, members: Message = {}): string {
  client.call(`make ${original}`, 'a__slow', { task: {}, ...members });
  child.answer(child.calls.length - 1, { task: taskOf(original) });
  return client.answerTo(`make ${original}`)?.result.task.taskId;
}

/** Lets the server answer the request, and waits for everything that follows from the answer. */
export async function replied(child: ScriptedPeer, ...answer: Parameters<ScriptedPeer['reply']>): Promise<void> {
  child.reply(...answer);
  await flush();
}

export function taskOf(taskId: string, status = 'working'): Message {
  return { taskId, status, createdAt: '2026-01-01T00:00:00Z', lastUpdatedAt: '2026-01-01T00:00:00Z', ttl: 60_000 };
}

export function statusOf(taskId: string, status = 'working'): Message {
  return { jsonrpc: '2.0', method: 'notifications/tasks/status', params: taskOf(taskId, status) };
}

export function progressOf(progressToken: unknown, progress: number, members: Message = {}): Message {
  return { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress, ...members } };
}

export function related(taskId: string): Message {
  return { _meta: { [RELATED]: { taskId } } };
}

/** Server requests that the client got, oldest first. */
export function serverRequests(client: ScriptedClient): Message[] {
  return client.received.messages.filter(({ id, method }) => id !== undefined && method !== undefined);
}

/** Notifications of one method that the client got. */
export function notificationsOf(client: ScriptedClient, method: string): Message[] {
  return client.received.messages.filter((message) => message.id === undefined && message.method === method);
}
