import { expect } from 'vitest';
import { HttpPeer } from '../../support/http-peer.js';
import type { Message } from '../../support/wire.js';
import { countOf, labelsIn } from './odd-payload.js';
import { TOOLS } from './offered-tools.js';
import { ERA, ofServers, type Person, type Received, VENDOR_NOTIFICATION } from './person.js';
import type { ServerProcess } from './server-process.js';
import type { World } from './world.js';

/** Checks all messages, after the longest possible wait. The numbers are those of the invariants. */
export function expectInvariants(world: World): void {
  for (const person of world.people) {
    for (const { state, id } of person.asked.values())
      if (!person.listens.has(id)) expect(state, `invariants 1 and 31: ${id}`).not.toBe('open');
    for (const received of person.received) expectOfClient(person, received);
  }
  for (const process of world.processes) {
    for (const received of process.received) expectOfServer(process, received);
    expectOpening(process);
    expectOverHttp(process);
    for (const [id, times] of process.asked) {
      expect(times, `invariants 17 and 18: ${id}`).toBeLessThanOrEqual(1);
      // A client with a session may leave a request open as long as it likes.
      const isModern = world.people.every((person) => person.isModern);
      if (isModern && !process.isDead && !process.hasLostMessages) expect(times, `invariant 17: ${id}`).toBe(1);
    }
  }
  expectSentOnce(world);
  expectNames(world);
  expectSameLists(world);
}

function expectOfClient({ name, isModern, asked }: Person, { line, message }: Received): void {
  expect(line, 'invariant 3').not.toContain(name === 'FIRST' ? 'SECOND-' : 'FIRST-');
  expectUnharmed(line);
  const { id, method, result, error } = message;
  const request = method === undefined ? asked.get(id) : undefined;
  if (request?.method === 'tools/list') expect(result?.tools, `invariant 14: ${line}`).toBeInstanceOf(Array);
  expectUndeclared(message, line);
  if (isModern) {
    expect(id !== undefined && method !== undefined, `invariant 21: ${line}`).toBe(false);
    if (result !== undefined) expect(result.resultType, `invariant 21: ${line}`).toBeDefined();
    expect([-32002, -32042], `invariant 21: ${line}`).not.toContain(error?.code);
    const isCacheable = request?.method === 'tools/list' || request?.method === 'resources/read';
    if (isCacheable && result?.resultType === 'complete') {
      expect([typeof result.ttlMs, typeof result.cacheScope], `invariant 21: ${line}`).toEqual(['number', 'string']);
    }
  } else {
    for (const member of ['resultType', 'ttlMs', 'cacheScope'])
      expect(result ?? {}, `invariant 22: ${line}`).not.toHaveProperty(member);
    expect(line, 'invariant 22').not.toContain('acknowledged');
  }
}

/** Neither client declared roots or visits of URLs, so no server may request them. */
function expectUndeclared({ method, params, result }: Message, line: string): void {
  const asked = [{ method, params }, ...Object.values<Message>(result?.inputRequests ?? {})];
  for (const each of asked) {
    expect([each.method, each.params?.mode], `invariant 20: ${line}`).not.toContain('roots/list');
    expect(each.params?.mode, `invariant 20: ${line}`).not.toBe('url');
  }
}

/** Checks that relayed messages have their odd members as written, and that answers of servers have all of them. */
function expectUnharmed(line: string): void {
  const labels = labelsIn(line);
  for (const label of new Set(labels)) {
    expect(countOf(line, label), `invariant 9: ${line}`).toBe(labels.filter((each) => each === label).length);
  }
  const [, answered] = /"text":"([A-Z]+-\d+\.)"/.exec(line) ?? [];
  if (answered !== undefined) expect(countOf(line, answered), `invariant 9: ${line}`).toBe(3);
  const messages = line.match(/"message":"[A-Z]+-\d+\."/g) ?? [];
  if (messages.length > 0) expect(labels.length, `invariant 9: ${line}`).toBe(messages.length);
}

function expectOfServer({ isModern, server }: ServerProcess, { line, message }: Received): void {
  const { id, method, params } = message;
  expect(line, 'invariant 4').not.toMatch(/"(?:id|progressToken|requestId)":(?:"(?:own|token)-|70\d\d\d)/);
  expectUnharmed(line);
  if (method === 'tools/call') {
    expect(countOf(line, params.marker), `invariant 9: ${line}`).toBe(3);
    const called = `${server.backend.key} ${params.name}`;
    expect(called, `invariant 10: ${line}`).toBe(params.wanted ?? called);
  }
  if (method === undefined || (id === undefined && method !== VENDOR_NOTIFICATION)) return;
  const reserved = Object.keys(params?._meta ?? {}).filter((key) => key.startsWith(ERA));
  if (isModern) {
    const required = [`${ERA}protocolVersion`, `${ERA}clientCapabilities`];
    // The revision requires these members only in requests.
    if (id !== undefined) expect(reserved, `invariant 23: ${line}`).toEqual(expect.arrayContaining(required));
    const state = params?.requestState;
    if (state !== undefined) expect(state, `invariant 16: ${line}`).toBe(`${params.marker}"\\`);
  } else {
    expect(reserved, `invariant 23: ${line}`).toEqual([]);
    expect(params ?? {}, `invariant 23: ${line}`).not.toHaveProperty('requestState');
  }
}

function expectOpening({ isModern, received }: ServerProcess): void {
  const methods = received.map(({ message }) => message.method).filter((method) => method !== 'server/discover');
  if (!isModern) expect(methods.slice(0, 2), 'invariant 24').toEqual(['initialize', 'notifications/initialized']);
}

/** Checks headers, and that no fault of the network was taken for an era. */
function expectOverHttp({ child, isModern, server }: ServerProcess): void {
  if (!(child instanceof HttpPeer)) return;
  expect(child.mismatches, 'invariant 28').toEqual([]);
  expect([undefined, isModern ? 'modern' : 'legacy'], 'invariant 32').toContain(server.era.begin());
}

/** Checks that a call reaches one process once. A call may come back to a server that required input. */
function expectSentOnce({ people, processes }: World): void {
  const sent = processes.flatMap(({ calls }) => calls.filter(({ message }) => isFirst(message)));
  const asked = people.flatMap((person) => [...person.asked.values()]);
  for (const { marker } of sent) {
    if (asked.filter((each) => each.marker === marker).length !== 1) continue;
    expect(sent.filter((each) => each.marker === marker).length, `sent once: ${marker}`).toBe(1);
  }
}

function isFirst({ method, params }: Message): boolean {
  return method === 'tools/call' && params.requestState === undefined;
}

/** Checks that each tool has the same name in all lists, whatever other servers do, and that each name means one tool. */
function expectNames({ listed }: World): void {
  const names = new Map<string, string>();
  for (const { line } of listed) {
    const { result } = JSON.parse(`{${line}`);
    const tools: Message[] = ofServers(result?.tools);
    const exposed = tools.map(({ name }) => name);
    expect(new Set(exposed).size, 'invariant 10').toBe(exposed.length);
    // A name that was taken would hide a tool.
    for (const key of new Set(tools.map(({ description }) => description.split(' ')[0]))) {
      const own = tools.filter(({ description }) => description.startsWith(`${key} `));
      expect(own.length, 'invariant 10').toBeGreaterThanOrEqual(TOOLS.length);
    }
    for (const { name, description } of tools) {
      expect(name, 'invariant 10').toMatch(/^[a-zA-Z0-9_-]{1,48}$/);
      expect(names.get(description) ?? name, 'invariant 11').toBe(name);
      names.set(description, name);
    }
  }
  expect(new Set(names.values()).size, 'invariant 10').toBe(names.size);
}

function expectSameLists({ listed, people }: World): void {
  for (const person of people) {
    const own = listed.filter((each) => each.person === person);
    for (const [at, { line, change }] of own.entries()) {
      const before = own[at - 1];
      if (before !== undefined && before.change === change) expect(line, 'invariant 12').toBe(before.line);
    }
  }
}
