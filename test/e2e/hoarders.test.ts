import { once } from 'node:events';
import * as net from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.js';
import { FAULTY, failureOf, textOf } from '../support/in-process-gateway.js';
import { HttpGateway } from '../support/raw-http-client.js';

const MIB = 1024 * 1024;

let end: () => Promise<unknown> = async () => {};
afterEach(() => end());

describe('servers that hoard unfinished messages', () => {
  const HOARDERS = ['h1', 'h2', 'h3', 'h4', 'h5'];

  it('F60: lose them, as their own violations, and every answer of a sound neighbor arrives', async () => {
    const servers = Object.fromEntries([...HOARDERS, 'sound'].map((key) => [key, { program: FAULTY }]));
    const gateway = await GatewayProcess.start({ servers, gateway: { maxPartial: '16MiB' } });
    end = () => gateway.dispose();
    for (const key of Object.keys(servers)) await gateway.untilState(key, 'ready');

    const hoarded = HOARDERS.map((key) => gateway.call(`${key}__hoard`, { bytes: 3.9 * MIB }));
    const used = async () => {
      const { message } = await gateway.call('trunkline__status', { server: 'sound' });
      return message.result.structuredContent.limits.partialFrameBytes.now;
    };
    await expect.poll(used, { timeout: 20_000 }).toBeGreaterThan(15 * MIB);
    for (let round = 0; round < 3; round += 1) {
      const calls = Array.from({ length: 4 }, () => gateway.call('sound__oversized', { bytes: 2 * MIB }));
      for (const { message } of await Promise.all(calls)) {
        expect(message.result.isError).toBeUndefined();
        expect(textOf(message.result).length).toBeGreaterThan(1.9 * MIB);
      }
    }

    const sound = await gateway.status('sound');
    expect(sound).toMatchObject({ state: 'ready', generation: 1, failures: 0, dropped: { evicted: 0, oversized: 0 } });
    const reports = await Promise.all(HOARDERS.map((key) => gateway.status(key)));
    const evicted = reports.filter(({ dropped }) => dropped.evicted === 1);
    // The fifth hoarder needs what one of the others holds; the answers of the neighbor may need more.
    expect(evicted.length).toBeGreaterThanOrEqual(1);
    for (const { failureReasons } of evicted) expect(failureReasons).toEqual({ response_dropped: 1 });
    for (const report of reports) expect(report).toMatchObject({ state: 'ready', generation: 1 });
    const text = textOf((await gateway.call('trunkline__status')).message.result);
    for (const { server } of evicted)
      expect(text).toMatch(new RegExp(`- ${server}: .*(\\n    .*)*unfinished messages dropped: 1 as the largest`));
    const losses = (await Promise.race(hoarded)).message.result;
    expect(failureOf(losses)).toMatchObject({ reason: 'response_dropped', sent: true, outcome: 'failed' });
  });
});

describe('a client over HTTP with many slow bodies', () => {
  it('F62: keeps neither the answers of servers nor the bodies of others out', async () => {
    const gateway = await HttpGateway.start({
      servers: { sound: { program: FAULTY } },
      gateway: { maxPartial: '8MiB', http: { maxPartial: '8MiB', requestBurst: 1000 } },
    });
    const sockets: net.Socket[] = [];
    end = async () => {
      for (const socket of sockets) socket.destroy();
      await gateway.dispose();
    };
    const client = await gateway.handshake();
    const { hostname, port } = new URL(gateway.url);
    for (let count = 0; count < 96; count += 1) {
      const socket = net.connect(Number(port), hostname);
      sockets.push(socket);
      socket.on('error', () => {});
      await once(socket, 'connect');
      socket.write(
        `POST /mcp HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: Bearer ${gateway.token}\r\n` +
          'Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n' +
          `Content-Length: ${MIB}\r\n\r\n${'x'.repeat(100 * 1024)}`,
      );
    }
    const limits = async () => {
      const params = { name: 'trunkline__status', arguments: { server: 'sound' } };
      return (await client.request('tools/call', params)).result.structuredContent.limits;
    };
    await expect.poll(async () => (await limits()).requestBodyBytes.refused, { timeout: 20_000 }).toBeGreaterThan(0);
    for (let round = 0; round < 5; round += 1) {
      expect((await client.call('sound__oversized', { bytes: 2 * MIB })).length).toBeGreaterThan(1.9 * MIB);
      expect(await client.call('sound__answer', { text: 'x'.repeat(MIB), nonce: `n${round}` })).toBe(`n${round}`);
    }
    const { partialFrameBytes, requestBodyBytes } = await limits();
    expect(partialFrameBytes).toMatchObject({ now: 0, refused: 0 });
    expect(requestBodyBytes.now).toBeLessThanOrEqual(requestBodyBytes.max);
  });
});
