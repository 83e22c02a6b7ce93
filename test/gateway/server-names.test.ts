import { describe, expect, it } from 'vitest';
import { type ServerScript, startGateway } from '../support/scripted-gateway.js';
import { flush, type Message } from '../support/wire.js';

const SERVER = 'io.modelcontextprotocol/serverInfo';
const OWN = { name: 'trunkline', version: '1.2.3' };

/** `_meta` of the result of a call, for a client without a handshake. */
async function metaOf(script: ServerScript, result: Message): Promise<Message> {
  const { connect, server } = await startGateway({ servers: { a: { tools: ['t'], ...script } } });
  const client = connect();
  client.modernRequest(1, 'tools/call', { name: 'a__t' });
  server('a').child.answer(0, result);
  await flush();
  return client.answerTo(1)?.result._meta;
}

describe('the server that a result names', () => {
  const hello = { capabilities: { tools: {} }, serverInfo: { name: 's', title: 'S', version: '7' } };
  const modern = { hasBridge: true, isModern: true, hello };

  it('is the one that the server names itself', async () => {
    const _meta = { [SERVER]: { name: 'x', version: '8' }, a: 1 };
    expect(await metaOf(modern, { resultType: 'complete', content: [], _meta })).toEqual(_meta);
  });

  it('is what a server without a handshake called itself when it was discovered, if the result does not say', async () => {
    expect(await metaOf(modern, { resultType: 'complete', content: [] })).toEqual({ [SERVER]: hello.serverInfo });
    expect(await metaOf(modern, { resultType: 'complete', content: [], _meta: { a: 1 } })).toEqual({
      [SERVER]: hello.serverInfo,
      a: 1,
    });
  });

  it('is the gateway where it translates the result of a server with a handshake, and for a server without a name', async () => {
    expect(await metaOf({ hello }, { content: [] })).toEqual({ [SERVER]: OWN });
    const unnamed = { ...modern, hello: { capabilities: { tools: {} } } };
    expect(await metaOf(unnamed, { resultType: 'complete', content: [] })).toEqual({ [SERVER]: OWN });
  });
});
