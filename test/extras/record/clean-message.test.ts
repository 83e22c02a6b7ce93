import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createCleaner } from '../../../src/extras/record/clean-message.js';
import { KnownSecrets } from '../../../src/host/observe/redact.js';
import { growthOf, LINEAR } from '../../support/cpu-time.js';

function cleaner(...values: string[]) {
  const secrets = new KnownSecrets();
  secrets.know([{ env: Object.fromEntries(values.map((value, at) => [`API_KEY_${at}`, value])), args: [] }]);
  return createCleaner(secrets.find);
}

describe('a message without its secrets', () => {
  it('is the same text if there are none, with its spaces and its numbers', () => {
    const text = '{ "jsonrpc":"2.0", "id" : 9007199254740993, "result":{"n":1.0,"e":1e400,"s":"\\u00e9"} }';
    expect(cleaner('some-secret-1')(text)).toBe(text);
  });

  it('is JSON whose other members are unchanged', () => {
    const clean = cleaner('some-secret-1')('{"id": 1.0,"result":{"a":"x some-secret-1 y","b":"\\u00e9"}}');
    expect(clean).toBe('{"id": 1.0,"result":{"a":"x [redacted] y","b":"\\u00e9"}}');
  });

  it('has no number that is a secret', () => {
    const clean = cleaner('12345678')('{"pin":12345678,"n":1}');
    expect(JSON.parse(clean)).toEqual({ pin: '[redacted]', n: 1 });
  });

  it('has no value of a member whose name says that it is one', () => {
    const clean = cleaner()('{"password":"hunter22","count":3,"nested":"{\\"api_key\\":\\"abcdef\\"}"}');
    expect(clean).not.toMatch(/hunter22|abcdef/);
    expect(JSON.parse(clean)).toMatchObject({ count: 3 });
  });

  it('keeps progress tokens and counts of tokens, which are no secrets', () => {
    const text = '{"params":{"_meta":{"progressToken":"abcdef-1"}},"max_token":100000,"progressToken":12345678}';
    expect(cleaner()(text)).toBe(text);
  });

  it.each([
    ['members', (text: string) => text],
    ['a text', (text: string) => JSON.stringify({ text })],
  ])('costs no more for each of many secrets than for a few, in %s', (_, within) => {
    const clean = cleaner();
    const messageOf = (secrets: number) => within(JSON.stringify(Array(secrets).fill({ token: 'abcd-1234' })));
    expect(growthOf((secrets) => void clean(messageOf(secrets)), 500)).toBeLessThan(LINEAR);
  });

  it('stays JSON where a secret ends in the middle of an escape', () => {
    const clean = cleaner('secret-a')('{"a":"secret-a\\nb","b":"password=abcd\\"x"}');
    expect(JSON.parse(clean)).toMatchObject({ a: '[redacted]\nb' });
  });

  it('is dropped as a whole if a secret consists of several members', () => {
    const secret = '"a":"x","b":"y"';
    expect(JSON.parse(cleaner(secret)(`{${secret}}`))).not.toMatchObject({ a: 'x', b: 'y' });
  });

  it('is text without secrets if it is no JSON', () => {
    expect(cleaner('some-secret-1')('Listening with some-secret-1')).toBe('Listening with [redacted]');
  });

  it('is always JSON, and never has the secret', () => {
    const secrets = fc.string({ minLength: 8, maxLength: 20 }).filter((text) => !/[\r\n]/.test(text));
    fc.assert(
      fc.property(secrets, fc.jsonValue(), fc.nat(1), (secret, value, depth) => {
        let text = JSON.stringify({ value, secret: `a ${secret} b` });
        for (let level = 0; level < depth; level += 1) text = JSON.stringify({ nested: text });
        const clean = cleaner(secret)(text);
        const values = JSON.stringify(JSON.parse(clean)).replaceAll('\\', '');
        // A secret such as `redacted` is a part of its replacement.
        if (!'[redacted]'.includes(secret.replaceAll('\\', ''))) expect(values).not.toContain(` ${secret} b`);
      }),
    );
  });
});
