import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { findServers } from '../../../../src/setup/clients/files/find-servers.js';
import type { FoundServers } from '../../../../src/setup/clients/files/found-server.js';
import { planImport } from '../../../../src/setup/clients/import/plan.js';
import { NOWHERE } from '../import/found.js';
import { ClientHome } from './client-home.js';

let home: ClientHome;
beforeEach(() => {
  home = new ClientHome();
});

const CLAUDE = 'Library/Application Support/Claude';
const DIRNAME = `\${__dirname}`;
const user = (key: string) => `\${user_config.${key}}`;

/** Installs an extension whose manifest has this server and these fields for the user, who has entered these settings. */
function install(server: object, { fields = {}, settings = {} as object, id = 'ant.dir.x.notes' } = {}): string {
  const manifest = { manifest_version: '0.3', name: 'notes', version: '1.0.0', server, user_config: fields };
  home.write(`${CLAUDE}/Claude Extensions Settings/${id}.json`, JSON.stringify(settings));
  const file = home.write(`${CLAUDE}/Claude Extensions/${id}/manifest.json`, JSON.stringify(manifest));
  return dirname(file);
}

async function found(): Promise<FoundServers> {
  return await findServers(home.system('darwin'));
}

/** A server with these arguments and variables. */
function node(args: readonly string[], env: Record<string, string> = {}): object {
  return { type: 'node', entry_point: 'index.js', mcp_config: { command: 'node', args, env } };
}

describe('an extension of Claude Desktop', () => {
  it('is found with its folder and the values that the user has entered', async () => {
    const args = [`${DIRNAME}/index.js`, '--root', user('roots'), `--depth=${user('depth')}`];
    const fields = { roots: { type: 'directory', multiple: true }, depth: { type: 'number', default: 3 } };
    const settings = { isEnabled: true, userConfig: { roots: ['/a', '/b'] } };
    const folder = install(node(args), { fields, settings });
    const { servers, unreadable } = await found();
    expect(unreadable).toEqual([]);
    expect(servers).toEqual([
      {
        place: {
          ...{ client: 'claude-desktop', title: 'Claude Desktop', scope: 'extension', format: 'json' },
          ...{ file: join(folder, 'manifest.json'), path: ['server', 'mcp_config'] },
        },
        name: 'notes',
        run: {
          ...{ kind: 'command', command: 'node', env: {} },
          args: [`${folder}/index.js`, '--root', '/a', '/b', '--depth=3'],
        },
        ...{ isDisabled: false, variables: 'none' },
      },
    ]);
  });

  it('gets a variable for a secret, which Claude Desktop has encrypted, and nothing for what is not needed', async () => {
    const env = { API_KEY: user('api_key'), REGION: user('region'), LEVEL: user('level') };
    const fields = {
      api_key: { type: 'string', sensitive: true, required: true },
      region: { type: 'string', required: true },
      level: { type: 'string' },
    };
    const settings = { userConfig: { api_key: '__encrypted__:AAAA' } };
    install(node(['x.js', user('level')], env), { fields, settings });
    const [server] = (await found()).servers;
    expect(server).toMatchObject({
      run: { args: ['x.js'], env: { API_KEY: `\${NOTES_API_KEY}`, REGION: `\${NOTES_REGION}` } },
      variables: 'claude-code',
    });
    expect(server?.run).not.toHaveProperty('env.LEVEL');
  });

  it('runs what its manifest names for this system, in the folders of this user', async () => {
    const server = {
      type: 'binary',
      mcp_config: {
        ...{ command: `${DIRNAME}/server`, args: [`\${HOME}`, user('where')] },
        platform_overrides: { darwin: { command: `${DIRNAME}/mac/server` }, win32: { command: 'server.exe' } },
      },
    };
    const folder = install(server, { fields: { where: { type: 'directory', default: `\${DOCUMENTS}/notes` } } });
    expect((await found()).servers[0]?.run).toMatchObject({
      command: `${folder}/mac/server`,
      args: [home.folder, `${home.path('Documents')}/notes`],
    });
  });

  it('is disabled if the user has disabled it', async () => {
    install(node(['x.js']), { settings: { isEnabled: false } });
    expect((await found()).servers).toMatchObject([{ isDisabled: true }]);
  });

  it.each([
    ['no command', '{"name":"x","server":{"type":"uv"}}', 'its manifest names no command'],
    ['no JSON', '{', 'its manifest is no JSON object'],
  ])('is reported and left with %s', async (_, manifest, because) => {
    const file = home.write(`${CLAUDE}/Claude Extensions/x/manifest.json`, manifest);
    expect(await found()).toMatchObject({
      servers: [],
      unreadable: [{ place: { file }, because: expect.stringContaining(because) }],
    });
  });

  it('becomes an entry of the configuration, with the variable that has to be set', async () => {
    const fields = { api_key: { type: 'string', sensitive: true, required: true } };
    const folder = install(node([`${DIRNAME}/index.js`], { API_KEY: user('api_key') }), { fields });
    const [planned] = planImport({
      ...{
        found: (await found()).servers,
        present: {},
        takesRemote: true,
        env: {},
        names: [],
        isOurselves: () => false,
        places: NOWHERE,
      },
      secrets: { envFile: undefined, values: {}, put: (name) => name },
      ...{ system: home.system('darwin'), readEnvFile: () => undefined },
    });
    expect(planned).toMatchObject({
      ...{ verdict: 'new', key: 'notes', unset: ['NOTES_API_KEY'] },
      entry: { command: 'node', args: [`${folder}/index.js`], env: { API_KEY: `\${NOTES_API_KEY}` } },
    });
  });
});
