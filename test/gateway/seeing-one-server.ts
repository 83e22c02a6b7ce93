// A server in memory that clients see unchanged, as at the endpoint /mcp/KEY.
import { type ServerScript, scriptGateway } from '../support/scripted-gateway.js';
import { flush } from '../support/wire.js';

export const PAGES = [
  '{"tools":[{"name":"x","inputSchema":{"type":"object"}}],"nextCursor":"1"}',
  '{"tools":[{"name":"y","inputSchema":{"type":"object"}}]}',
];

/** One server with its first process, and a client that sees it unchanged. */
export async function seeing(script: ServerScript = {}) {
  const world = scriptGateway({ servers: { a: { pages: PAGES, sharing: 'profile', ...script } } });
  const one = world.connect({ server: 'a' });
  one.request('hello', 'initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 't', version: '0' },
  });
  await world.server('a').start();
  await flush();
  one.say({ jsonrpc: '2.0', method: 'notifications/initialized' });
  one.received.take();
  const announcements = () => {
    world.clock.advance(1_000);
    return one.received.take().flatMap(({ method }) => (String(method).endsWith('list_changed') ? [method] : []));
  };
  return { ...world, one, a: world.server('a'), child: () => world.server('a').child, announcements };
}
