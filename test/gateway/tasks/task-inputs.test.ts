import { describe, expect, it } from 'vitest';
import { TaskInputs } from '../../../src/gateway/tasks/extension-task.js';
import type { UpstreamConnection } from '../../../src/upstream/upstream-connection.js';
import { EnvelopeRequest } from '../../../src/wire/mcp/relayed-request.js';
import { FakeClock } from '../../support/fake-clock.js';
import { elicitation, ModernPeer } from '../../support/modern-peer.js';
import { requestOf } from '../../support/wire.js';

describe('a request for input of a task', () => {
  it('reaches its client however often the state of the task was read before', () => {
    const clock = new FakeClock();
    const peer = new ModernPeer();
    peer.request('tools/list');
    const [client] = peer.gateway.clients;
    if (client === undefined) throw new Error('No client');
    const inputs = new TaskInputs(clock, client);
    const params = { taskId: 't', _meta: peer.meta };
    inputs.usedBy(client, new EnvelopeRequest(requestOf({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params })));
    const connection = { request: () => new Promise(() => {}) } as unknown as UpstreamConnection;
    for (let count = 0; count < 20_000; count += 1) {
      void inputs.gather(connection, 't', { idleMs: 1, maxMs: 1 });
      clock.advance(1_000);
    }
    inputs.requireInput(elicitation().input);
    expect(inputs.requests).toBeDefined();
    expect(clock.pending).toBe(0);
  });
});
