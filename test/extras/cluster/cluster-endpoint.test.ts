import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { ClusterEndpoint } from '../../../src/extras/cluster/cluster-endpoint.js';
import type { ClusterMember, ReceivedRequest } from '../../../src/extras/cluster/cluster-member.js';
import { inSession, request } from '../../downstream/http/serving.js';

describe('the endpoint of a gateway of a cluster', () => {
  it.each([
    ['is about to leave', 'moving', 503],
    ['has left', 'elsewhere', 404],
  ] as const)('passes no call of another gateway to a server that %s while the body comes', async (_, then, status) => {
    let [server, asked]: [ReceivedRequest['server'], number] = ['here', 0];
    const cluster = {
      received: (): ReceivedRequest => {
        asked += 1;
        const caller = { principal: 'gateway:bbbbbbbbbb' };
        return { caller, endpoint: 'files', client: { address: '127.0.0.1', port: 1 }, server, isBody: () => true };
      },
      ...{ size: 2, connections: 0, hasCalls: false, homeOf: () => undefined, homeOfReceived: () => undefined },
      noteSubject: () => {},
      ...{ leave: async () => {}, close: async () => {} },
    };
    const { http, session } = await inSession(undefined, {
      decorate: async (endpoint) => new ClusterEndpoint(cluster as unknown as ClusterMember, endpoint, false),
    });
    const body = JSON.stringify(request(1));
    const socket = await http.connect();
    asked = 0;
    socket.write(http.head('POST', { ...session, 'content-length': String(body.length) }));
    // Once to identify the caller, and once to admit the request.
    await expect.poll(() => asked).toBe(2);
    server = then;
    socket.write(body);
    expect(String(await once(socket, 'data'))).toMatch(`HTTP/1.1 ${status} `);
    expect(http.core.last.bodies).toHaveLength(1);
  });
});
