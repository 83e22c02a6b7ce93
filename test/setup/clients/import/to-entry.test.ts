import { describe, expect, it, test } from 'vitest';
import { isPlainSetting, moveSecrets } from '../../../../src/setup/clients/import/to-entry.js';

class Store {
  readonly values: Record<string, string> = {};

  put(name: string, value: string): string {
    this.values[name] = value;
    return name;
  }
}

const $ = '$';

describe('a plain setting, which may stand in the configuration,', () => {
  test.each([
    ['LOG_LEVEL', 'debug'],
    ['PORT', '8080'],
    ['TIMEOUT', '1.5s'],
    ['DEBUG', 'true'],
    ['LANG', 'en_US'],
    ['FEATURES', 'a,b'],
    ['DATA', '/var/data/a.json'],
    ['DATA', '~/data'],
    ['DATA', 'C:\\data'],
    ['BASE', 'https://example.test:8443/api/v2'],
    ['EMPTY', ''],
  ])('is %s=%s', (name, value) => {
    expect(isPlainSetting(name, value)).toBe(true);
  });

  test.each([
    ['API_KEY', 'short'],
    ['PASSWORD', 'word'],
    ['PIN', '12345678'],
    ['X', 'correct horse'],
    ['X', 'ghp_0123456789abcdefghijABCDEFGHIJ012345'],
    ['X', 'a1b2c3'],
    ['DATABASE', 'postgres://ada:pw@db/app'],
    ['BASE', 'https://example.test/?key=1'],
    ['BASE', 'https://example.test/s/0123456789abcdef0123456789abcdef'],
  ])('is not %s=%s', (name, value) => {
    expect(isPlainSetting(name, value)).toBe(false);
  });
});

describe('the secrets of a server', () => {
  const moved = (args: string[], env: Record<string, string> = {}) => {
    const store = new Store();
    const { args: left, env: rest } = moveSecrets({ program: { command: 'x' }, args, env }, 'git-hub', store);
    return { args: left, env: rest, values: store.values };
  };

  it('go into variables that carry the name of the server', () => {
    expect(moved([], { TOKEN: 't1', GIT_HUB_KEY: 'k', LEVEL: 'info', OWN: `${$}{OWN}` })).toEqual({
      args: [],
      env: { TOKEN: `${$}{GIT_HUB_TOKEN}`, GIT_HUB_KEY: `${$}{GIT_HUB_KEY}`, LEVEL: 'info', OWN: `${$}{OWN}` },
      values: { GIT_HUB_TOKEN: 't1', GIT_HUB_KEY: 'k' },
    });
  });

  it.each<[string[], string[], Record<string, string>]>([
    [['--token', 'canary1'], ['--token', `${$}{GIT_HUB_TOKEN}`], { GIT_HUB_TOKEN: 'canary1' }],
    [['--api-key=canary1'], [`--api-key=${$}{GIT_HUB_API_KEY}`], { GIT_HUB_API_KEY: 'canary1' }],
    [['postgres://ada:canary1@db/app'], [`${$}{GIT_HUB_URL}`], { GIT_HUB_URL: 'postgres://ada:canary1@db/app' }],
    [['-c', 'PASSWORD=canary1 node x'], ['-c', `PASSWORD=${$}{GIT_HUB_C}`], { GIT_HUB_C: 'canary1 node x' }],
    [['--level', 'info', '--port=80'], ['--level', 'info', '--port=80'], {}],
    [['--token', `${$}{TOKEN}`], ['--token', `${$}{TOKEN}`], {}],
    [['X-Api-Key:$${HEADER}'], ['X-Api-Key:$${HEADER}'], {}],
  ])('leave the arguments %j', (args, left, values) => {
    expect(moved(args)).toEqual({ args: left, env: {}, values });
  });

  it('are not taken out of a text that has references too', () => {
    expect(moved([], { HEADER_X: `Bearer ${$}{TOKEN}` }).values).toEqual({});
    const mixed = `${$}{A}:ghp_0123456789abcdefghijABCDEFGHIJ012345`;
    expect(() => moved([], { X: mixed })).toThrow('its variable X is a mixture of a secret and of other variables');
  });

  it('that no environment file can hold are refused', () => {
    expect(() => moved([], { TOKEN: `"'\`\n` })).toThrow('its TOKEN contains all kinds of quotes');
    expect(() => moved([], { TOKEN: 'two\r\nlines' })).toThrow('its TOKEN contains line ends of Windows');
  });
});
