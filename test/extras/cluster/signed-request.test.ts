import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import {
  ANY_RECEIVER,
  MEMBERS_PATH,
  RequestSigner,
  RequestVerifier,
  SIGNATURE_HEADER,
  signText,
  type ToSign,
  verifyText,
} from '../../../src/extras/cluster/signed-request.js';
import type { Keys } from '../../../src/host/sealed-bytes.js';
import { repetitions } from '../../support/repetitions.js';
import { Seeded } from '../../support/seeded.js';

const [KEY, OLDER, STRANGE] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer, Buffer];
const [A, B] = ['aaaaaaaaaa', 'bbbbbbbbbb'];
const BODY = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call"}');
const CALLER = { principal: 'p', user: { principal: 'p', name: 'Ann', kind: 'user', groups: ['eng'] } } as const;
const CALL: ToSign = {
  ...{ to: B, method: 'POST', path: '/mcp', body: BODY },
  headers: { host: '10.0.0.2:7412', 'content-type': 'application/json', 'mcp-session-id': 't1.x' },
  facts: { caller: CALLER, client: { address: '10.0.0.9', port: 1 }, endpoint: 'v/work', key: 'user:p' },
};

type Parsed = Pick<IncomingMessage, 'method' | 'url' | 'headers' | 'rawHeaders'>;

/** The request as the receiver's Node has parsed it. */
function received(signed: ToSign, headers: Readonly<Record<string, string>>): Parsed {
  const all = { ...headers, connection: 'keep-alive', 'content-length': String(signed.body?.length ?? 0) };
  return { method: signed.method, url: signed.path, headers: all, rawHeaders: Object.entries(all).flat() };
}

const verify = (verifier: RequestVerifier, request: Parsed) => verifier.verify(request as IncomingMessage);

describe('a request between gateways', () => {
  const signer = new RequestSigner([KEY], A);
  const sign = (request: ToSign = CALL) => received(request, signer.sign(request));

  it('brings what was signed, and proves its body', () => {
    const verified = verify(new RequestVerifier([KEY], B), sign());
    expect(verified).toMatchObject({ from: A, to: B, caller: CALLER, endpoint: 'v/work', key: 'user:p' });
    expect([verified?.isBody(BODY), verified?.isBody(Buffer.from('{}'))]).toEqual([true, false]);
  });

  it('is accepted once, at one gateway, in any order', () => {
    const verifier = new RequestVerifier([KEY], B);
    const requests = Array.from({ length: 200 }, () => sign());
    for (const request of new Seeded(1).shuffle(requests)) expect(verify(verifier, request)).toBeDefined();
    for (const request of requests) expect(verify(verifier, request)).toBeUndefined();
    expect(verify(new RequestVerifier([KEY], 'cccccccccc'), sign())).toBeUndefined();
  });

  it('has an answer that only a gateway with the key can give, to this request and with this body', () => {
    const [first, second] = [signer.sign(CALL), signer.sign(CALL)];
    const proofBy = (keys: Keys, body?: string) => {
      const proof = new RequestVerifier(keys, B).proofFor(received(CALL, first) as IncomingMessage, body);
      return { headers: { [SIGNATURE_HEADER]: proof } };
    };
    const asker = new RequestSigner([KEY, OLDER], A);
    expect([asker.isProven(first, proofBy([KEY])), asker.isProven(first, proofBy([OLDER, KEY], '{}'), '{}')]).toEqual([
      true,
      true,
    ]);
    expect([
      asker.isProven(second, proofBy([KEY])),
      asker.isProven(first, proofBy([KEY], '{}'), '{ }'),
      asker.isProven(first, proofBy([STRANGE])),
      asker.isProven(first, { headers: {} }),
      asker.isProven(first, { headers: { [SIGNATURE_HEADER]: first[SIGNATURE_HEADER] } }),
    ]).toEqual([false, false, false, false, false]);
  });

  it('is refused if many came since, because the receiver remembers a limited number', () => {
    const verifier = new RequestVerifier([KEY], B);
    const late = sign();
    for (let count = 0; count < 40_000; count += 1) signer.sign(CALL);
    expect(verify(verifier, sign())).toBeDefined();
    expect(verify(verifier, late)).toBeUndefined();
  });

  it('may have any of the keys of the receiver, so that keys can be replaced', () => {
    const older = received(CALL, new RequestSigner([OLDER], A).sign(CALL));
    expect(verify(new RequestVerifier([KEY, OLDER], B), older)).toBeDefined();
    const strange = received(CALL, new RequestSigner([STRANGE], A).sign(CALL));
    expect(verify(new RequestVerifier([KEY, OLDER], B), strange)).toBeUndefined();
  });

  it('of a command names no gateway, and gets the list of the gateways only', () => {
    const command = new RequestSigner([KEY], 'command');
    for (const path of [MEMBERS_PATH, '/mcp']) {
      const request = { to: ANY_RECEIVER, method: 'GET', path, headers: {} };
      const isAccepted = verify(new RequestVerifier([KEY], B), received(request, command.sign(request))) !== undefined;
      expect(isAccepted).toBe(path === MEMBERS_PATH);
    }
  });

  it('F360: is refused with any change, by a property test', () => {
    const random = new Seeded(7);
    const verifier = new RequestVerifier([KEY], B);
    const characters = 'AZaz09-_=+/ .~"{}\\,;:';
    const alter = (text: string) => {
      const at = random.below(text.length + 1);
      const other = random.pick([...characters]);
      const kind = random.below(3);
      if (kind === 0) return text.slice(0, at) + other + text.slice(at);
      if (kind === 1) return text.slice(0, at) + text.slice(at + 1);
      return text.slice(0, at) + other + text.slice(at + 1);
    };
    let accepted = 0;
    for (let count = 0; count < repetitions({ full: 10_000, short: 200 }); count += 1) {
      const genuine = sign();
      const headers: Record<string, string> = { ...(genuine.headers as Record<string, string>) };
      const signature = headers[SIGNATURE_HEADER] ?? '';
      const changed = { method: genuine.method, url: genuine.url, headers };
      const what = random.below(6);
      if (what === 0) changed.method = random.pick(['GET', 'DELETE', 'post']);
      else if (what === 1) changed.url = alter(genuine.url ?? '');
      else if (what === 2) headers[random.pick(['mcp-session-id', 'content-type', 'host'])] = `x${count}`;
      else if (what === 3) headers[random.pick(['authorization', 'mcp-name', 'expect', 'x-any'])] = 'more';
      else if (what === 4) delete headers[random.pick(['mcp-session-id', 'content-type', 'host', SIGNATURE_HEADER])];
      else headers[SIGNATURE_HEADER] = alter(signature);
      const isSame =
        headers[SIGNATURE_HEADER] === signature && what === 5 ? true : what === 1 && changed.url === '/mcp';
      const rawHeaders = Object.entries(headers).flat();
      if (!isSame && verify(verifier, { ...changed, rawHeaders }) !== undefined) accepted += 1;
    }
    expect(accepted).toBe(0);
  });
});

describe('the text of a gateway in the store', () => {
  it('is valid under its name, unchanged, with one of the keys', () => {
    const signed = signText([KEY], A, '{"load":1}');
    expect(verifyText([OLDER, KEY], A, signed)).toBe('{"load":1}');
    for (const [name, text] of [
      [B, signed],
      [A, `${signed} `],
      [A, `A${signed}`],
      [A, ''],
      [A, '.'],
    ] as const)
      expect(verifyText([KEY], name, text)).toBeUndefined();
    expect(verifyText([STRANGE], A, signed)).toBeUndefined();
  });
});
