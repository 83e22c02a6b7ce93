import { expect, it } from 'vitest';
import { CallFeed } from '../../../src/gateway/call-feed.js';
import { FollowedCalls } from '../../../src/hub/server/followed-calls.js';
import type { ResponseEnvelope } from '../../../src/mcp/envelope.js';
import type { RecordedGateway } from '../../../src/record/record-to.js';
import { FakeClock } from '../../support/fake-clock.js';
import { InMemoryExchange } from '../../support/in-memory-client.js';
import { bytesOf, scan } from '../../support/wire.js';

it('a failed call has the words of its server, also if they came with other messages in one read', () => {
  const clock = new FakeClock();
  const calls = new CallFeed(() => clock.now());
  const secrets = { find: () => ({ known: [], likely: [] }), redact: (text: string) => text };
  const gateway = { platform: { clock }, calls, secrets } as unknown as RecordedGateway;
  const followed = new FollowedCalls(gateway, '/c/trunkline.yaml', () => 1);
  const facts = { profile: { clientInfo: {}, capabilities: {}, protocolVersion: '2025-11-25' } };
  const exchange = new InMemoryExchange('tools/call', { name: 'files__read' });
  calls.session({ facts, view: { serve: () => {} } })(exchange);
  exchange.trail?.routed('files', 'files', false);
  const before = '{"jsonrpc":"2.0","method":"notifications/message"}\n';
  const text = '{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[{"type":"text","text":"no such file"}]}}';
  const read = bytesOf(`${before}${text}\n{"jsonrpc":"2.0","id":2,`);
  exchange.answer(scan(read, before.length, before.length + text.length) as ResponseEnvelope);
  expect(followed.failuresOf('files').calls).toMatchObject([{ outcome: 'tool_error', reason: 'no such file' }]);
  followed.close();
});
