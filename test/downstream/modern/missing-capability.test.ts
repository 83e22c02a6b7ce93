import { describe, expect, it } from 'vitest';
import { Asked, elicitation, ModernPeer, type PeerOptions, resultOf } from '../../support/modern-peer.js';
import { type Message, responseOf } from '../../support/wire.js';

const FAILED = { content: [{ type: 'text', text: 'No model' }], isError: true };

/** A call whose server sends these requests, and the client's answer after the server's answer. */
function answered(asked: readonly Asked[], answer: Message, options: PeerOptions = { capabilities: {} }): Message {
  const peer = new ModernPeer(options);
  const id = peer.call();
  for (const { input } of asked) peer.gateway.last.requireInput(input);
  peer.gateway.last.answer(responseOf({ jsonrpc: '2.0', id: 99, ...answer }));
  return peer.answerTo(id) ?? {};
}

const sampling = () => new Asked('sampling/createMessage', { messages: [] });

describe('a call whose legacy server asks for what its client does not declare', () => {
  it('F187: fails with the capability if its server fails, and keeps what the server said', () => {
    const asked = sampling();
    const { error } = answered([asked], { result: { ...FAILED, vendor: 1 } });
    expect(error).toEqual({
      code: -32021,
      message: expect.stringMatching(/\(sampling\), and failed\. The server said: No model$/),
      data: { requiredCapabilities: { sampling: {} }, result: { ...FAILED, vendor: 1 } },
    });
    expect(asked.errors.map(({ code }) => code)).toEqual([-32601]);
  });

  it('keeps the data of an error of its server', () => {
    const data = (value?: unknown) =>
      answered([sampling()], { error: { code: -32000, message: 'no', data: value } }).error.data;
    const required = { requiredCapabilities: { sampling: {} } };
    expect(data({ a: 1, requiredCapabilities: 2 })).toEqual({ ...required, a: 1 });
    expect(data([1])).toEqual({ ...required, data: [1] });
    expect(data()).toEqual(required);
  });

  it('gets the capability alone if what its server said is nested too deep for the data', () => {
    const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)]);
    const { error } = answered([sampling()], { result: { ...FAILED, vendor: deep(509) } });
    expect(error).toMatchObject({ code: -32021, data: { requiredCapabilities: { sampling: {} } } });
    expect(error.data).not.toHaveProperty('result');
  });

  it('names all that is missing, in the mode that is missing', () => {
    const url = new Asked('elicitation/create', { mode: 'url', url: 'https://a.test', message: 'Log in' });
    const asked = [sampling(), elicitation(), url];
    const { error } = answered(asked, { error: { code: 1, message: 'no' } });
    expect(error.data.requiredCapabilities).toEqual({ sampling: {}, elicitation: { form: {}, url: {} } });
    expect(error.message).toContain('(sampling, elicitation.form, elicitation.url)');
  });

  it('gets the result of a server that does without it', () => {
    expect(answered([sampling()], { result: { content: [] } }).result).toMatchObject({ content: [] });
  });

  it('gets the failure of a server that asked for nothing that it does not declare', () => {
    expect(answered([], { result: FAILED }).result).toMatchObject(FAILED);
    const declared = new ModernPeer();
    const id = declared.call();
    declared.gateway.last.requireInput(new Asked('vendor/ask').input);
    declared.gateway.last.answer(resultOf(FAILED));
    expect(declared.answerTo(id)?.result).toMatchObject(FAILED);
  });

  it('gets the failure of its server as it is if that asked for roots alone, as many servers do when they start', () => {
    const asked = new Asked('roots/list');
    expect(answered([asked], { result: FAILED }).result).toMatchObject(FAILED);
    expect(asked.errors.map(({ code }) => code)).toEqual([-32601]);
  });

  it('gets the failure of its server as it is while other calls of the client may have caused the question', () => {
    const peer = new ModernPeer({ capabilities: {} });
    const [first, second] = [peer.call(), peer.call()];
    peer.gateway.last.requireInput(sampling().input);
    for (const exchange of peer.gateway.exchanges) exchange.answer(resultOf(FAILED));
    for (const id of [first, second]) expect(peer.answerTo(id)?.result).toMatchObject(FAILED);
  });
});

describe('a request about a task of the extension', () => {
  it.each(['tasks/get', 'tasks/update', 'tasks/cancel'])('%s needs a client that declares the extension', (method) => {
    const extensions = { 'io.modelcontextprotocol/tasks': {} };
    const peer = new ModernPeer();
    const id = peer.request(method, { taskId: 't' });
    expect(peer.answerTo(id)?.error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { extensions } },
    });
    expect(peer.gateway.exchanges).toEqual([]);
    new ModernPeer({ ...peer, capabilities: { extensions } }).request(method, { taskId: 't' });
    expect(peer.gateway.exchanges).toHaveLength(1);
  });
});
