import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tokenAt } from '../../fixtures/servers/odd/raw-json.mjs';
import { CALL_TOOL_WAY, Fleet, WAYS, type WayName } from '../../support/differential/fleet.js';
import { ANSWERS } from './answers.js';
import { CANCELLING } from './cancelling.js';
import { CATALOGS } from './catalogs.js';
import { NOTIFICATIONS } from './notifications.js';
import { REQUESTS } from './requests.js';
import type { Restricted, Scripts } from './scripts.js';
import { SERVER_REQUESTS } from './server-requests.js';

/** Catalogs come last: they change what the server lists. */
const THEMES: readonly (readonly [string, Scripts])[] = [
  ['a server answers with', ANSWERS],
  ['a client sends', REQUESTS],
  ['either side says', NOTIFICATIONS],
  ['a client cancels', CANCELLING],
  ['a server asks', SERVER_REQUESTS],
  ['a client can', CATALOGS],
];

/** The introduction of a client, with members that nobody knows. */
const CLIENT = {
  revision: '"2025-11-25"',
  capabilities:
    '{"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"experimental":{"vendor/x":{"deep":[1,{"a":null}]}},"vendor":{"\u00e9":[]}}',
  info: '{"name":"a client","title":"A client","version":"0.0.1","websiteUrl":"https://a.test","icons":[{"src":"data:,"}],"vendor":[{}]}',
};

let fleet: Fleet;
beforeAll(async () => {
  const { revision, capabilities, info } = CLIENT;
  fleet = await Fleet.open(
    `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":${revision},"capabilities":${capabilities},"clientInfo":${info}}}`,
  );
});
afterAll(() => fleet.close());

describe.each(THEMES)('through Trunkline as without it, %s', (_, scripts) => {
  it.each(Object.entries(scripts))('%s', async (_, entry) => {
    const { on, play } = isRestricted(entry) ? entry : { on: waysFor(scripts), play: entry };
    const [direct, ...others] = await fleet.play(play, on);
    if (direct === undefined || others.length === 0) throw new Error('There is nothing to compare');
    const { inOrder, ...heard } = direct.transcript;
    expect([...heard.server, ...heard.listed, ...inOrder]).not.toEqual([]);
    for (const { way, transcript } of others) {
      const { inOrder: theirOrder, ...theirs } = transcript;
      expect.soft(theirs, way).toEqual(heard);
      // Over HTTP each message has its place on its own stream, which is compared above.
      if (!way.startsWith('over HTTP')) expect.soft(theirOrder, way).toEqual(inOrder);
    }
  });
});

describe('a server is initialized', () => {
  // `test/gateway/translated-eras.test.ts` and `test/downstream/legacy/handshake.test.ts` have older revisions.
  it.each(WAYS)('with the revision, capabilities and name of the client, %s', (way) => {
    const [initialize = '', initialized] = fleet.initializeResult(way).server;
    expect(tokenAt(initialize, ['params', 'protocolVersion'])).toBe(CLIENT.revision);
    expect(tokenAt(initialize, ['params', 'capabilities'])).toBe(CLIENT.capabilities);
    expect(tokenAt(initialize, ['params', 'clientInfo'])).toBe(CLIENT.info);
    expect(initialized).toBe('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  });

  it('and its own initialize result reaches the client at its own endpoint', () => {
    const { answer } = fleet.initializeResult('over HTTP to its own endpoint');
    expect(answer).toBe(fleet.initializeResult('directly').answer);
  });
});

/** A client in search mode sees another list of tools. */
function waysFor(scripts: Scripts): readonly WayName[] {
  return scripts === CATALOGS ? WAYS.filter((way) => way !== CALL_TOOL_WAY) : WAYS;
}

function isRestricted(entry: Scripts[string]): entry is Restricted {
  return typeof entry !== 'function';
}
