import { describe, expect, it } from 'vitest';
import { startGateway } from '../../support/scripted-gateway.js';
import { flush } from '../../support/wire.js';

const ERA = 'io.modelcontextprotocol';
const META = `"${ERA}/protocolVersion":"2026-07-28","${ERA}/clientInfo":{"name":"m","version":"0"},"${ERA}/clientCapabilities":{}`;
const OWN = `{"jsonrpc":"2.0", "method":"notifications/vendor/x","params":{"_meta":{"a":1.0,${META}},"n":1e400}}`;
const FOR_LEGACY = '{"jsonrpc":"2.0", "method":"notifications/vendor/x","params":{"_meta":{"a":1.0},"n":1e400}}';

describe('a notification that only the client and its servers know, of a client without a handshake', () => {
  async function running(facts = {}) {
    const world = await startGateway({
      servers: { old: { hasBridge: true }, new: { hasBridge: true, isModern: true } },
    });
    const client = world.connect(facts);
    client.say(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{${META}}}}`);
    await flush();
    const heard = (key: string) => world.server(key).child.received.lines.filter((line) => line.includes('vendor'));
    return { ...world, client, heard };
  }

  it('invariant 23: loses for a legacy server what only modern ones know, and nothing else', async () => {
    const { client, heard } = await running();
    client.say(OWN);
    await flush();
    expect([heard('old'), heard('new')]).toEqual([[FOR_LEGACY], [OWN]]);
  });

  it('invariant 23: loses it as well if it waits for the next process, as at the endpoint of one server', async () => {
    const { client, heard, server } = await running({ server: 'old' });
    server('old').crash();
    client.say(OWN);
    await server('old').start();
    await flush();
    expect(heard('old')).toEqual([FOR_LEGACY]);
  });
});
