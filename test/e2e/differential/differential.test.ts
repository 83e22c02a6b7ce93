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
const OLD_CLIENT = { revision: '"2024-11-05"', capabilities: '{}', info: '{"version":"","name":"old"}' };

function serverHandshake({ revision, capabilities, info }: typeof CLIENT): string {
  return `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":${revision},"capabilities":${capabilities},"clientInfo":${info}}}`;
}

let fleet: Fleet;
beforeAll(async () => {
  fleet = await Fleet.open(serverHandshake(CLIENT));
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
  const expectToBeToldOf = ({ revision, capabilities, info }: typeof CLIENT, server: readonly string[]) => {
    const [initialize = '', initialized] = server;
    expect(tokenAt(initialize, ['params', 'protocolVersion'])).toBe(revision);
    expect(tokenAt(initialize, ['params', 'capabilities'])).toBe(capabilities);
    expect(tokenAt(initialize, ['params', 'clientInfo'])).toBe(info);
    expect(initialized).toBe('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  };

  it.each(WAYS)('with the revision, capabilities and name of the client, %s', (way) => {
    expectToBeToldOf(CLIENT, fleet.initializeResult(way).server);
  });

  it('with those of a client of the oldest revision, on every way', async () => {
    const old = await Fleet.open(serverHandshake(OLD_CLIENT));
    try {
      for (const way of WAYS) expectToBeToldOf(OLD_CLIENT, old.initializeResult(way).server);
    } finally {
      await old.close();
    }
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
