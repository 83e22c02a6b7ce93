import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkFile } from '../../../src/config/file/check-file.js';
import { type Config, isForFolder, isInView } from '../../../src/config/resolve/config.js';
import { asProject, keyInProject, layered } from '../../../src/config/resolve/layers.js';
import { resolveConfig } from '../../../src/config/resolve/resolve-config.js';
import { programOf } from '../../../src/spec/server-spec.js';
import { folderWith } from '../files.js';

const OPTIONS = { env: { HOME: '/home/ada' }, nodePath: '/opt/node', ownFolder: '/opt/trunkline' };

/** The configuration of a user with projects, each a text in a folder of this name. Clients work in the folders of the projects. */
function layersOf(
  text: string,
  projects: Record<string, string>,
): { config: Config; fileOf: (name: string) => string } {
  const root = folderWith(Object.fromEntries(Object.keys(projects).map((name) => [`${name}/trunkline.yaml`, ''])));
  const fileOf = (name: string) => join(root, name, 'trunkline.yaml');
  const user = checkFile(text, 'own.yaml');
  const resolved = Object.entries(projects).map(([name, own]) => {
    const checked = checkFile(own, fileOf(name), user.shared);
    const config = resolveConfig(fileOf(name), asProject(checked, fileOf(name), user), OPTIONS);
    return { config, keys: [...checked.servers.map(({ key }) => key), ...checked.disabled] };
  });
  const files = Object.keys(projects).map(fileOf);
  const projectOf = (folder: string | undefined) => files.find((file) => file === join(folder ?? '', 'trunkline.yaml'));
  const config = layered(resolveConfig(join(root, 'own.yaml'), user, OPTIONS), resolved, {
    ...{ projectOf, remarkOn: () => undefined, files: [], states: '' },
  });
  return { config, fileOf };
}

/** The keys of the servers that clients in the folder of a project see, or those outside of all projects. */
function seenIn({ config, fileOf }: ReturnType<typeof layersOf>, project?: string): string[] {
  const folder = project === undefined ? undefined : join(fileOf(project), '..');
  return config.servers.filter((server) => isForFolder(config, server, folder)).map(({ key }) => key);
}

describe('the servers of a project', () => {
  const layers = () =>
    layersOf('servers: { docs: { command: own }, mine: { command: own } }', {
      shop: 'servers: { docs: { command: theirs }, db: { command: theirs } }',
      blog: 'servers: { mine: { command: x, disabled: true } }',
    });

  it('are for clients in its folder, where they hide those of the user with their keys', () => {
    const all = layers();
    const key = (name: string) => keyInProject(name, all.fileOf('shop'));
    expect(seenIn(all)).toEqual(['docs', 'mine']);
    expect(seenIn(all, 'shop')).toEqual(['mine', key('docs'), key('db')]);
    expect(key('docs')).toMatch(/^docs@shop-[0-9a-f]{32}$/);
  });

  it('hide one whose key differs in case only', () => {
    const all = layersOf('servers: { Docs: { command: own } }', { shop: 'servers: { docs: { command: theirs } }' });
    expect(seenIn(all, 'shop')).toEqual([keyInProject('docs', all.fileOf('shop'))]);
    expect(all.config.servers[1]?.layer?.hides).toBe(true);
  });

  it('switch one of the user off in its folder if they are disabled', () => {
    expect(seenIn(layers(), 'blog')).toEqual(['docs']);
  });

  it('have the names of tools of their file, and run in the folder of their file', () => {
    const { config, fileOf } = layers();
    const [, , docs, db] = config.servers;
    expect(docs).toMatchObject({ prefix: 'docs', layer: { file: fileOf('shop'), key: 'docs', hides: true } });
    expect(db?.layer?.hides).toBe(false);
    expect(docs && programOf(docs)?.cwd).toBe(join(fileOf('shop'), '..'));
    expect(config.serverFor(docs?.key ?? '', { environment: {}, folder: '/' })).toMatchObject({
      prefix: 'docs',
      layer: docs?.layer,
    });
  });

  it('are in the views that name their keys', () => {
    const { config, fileOf } = layersOf('servers: { docs: { command: own } }\nviews: { some: { servers: [docs] } }', {
      shop: 'servers: { docs: { command: theirs }, db: { command: theirs } }',
    });
    expect(isInView(config, keyInProject('docs', fileOf('shop')), 'some')).toBe(true);
    expect(isInView(config, keyInProject('db', fileOf('shop')), 'some')).toBe(false);
  });
});

describe('two projects with the same keys in the gateway', () => {
  it('are both refused, because one would get the processes and logins of the other', () => {
    const file = join(folderWith({ 'shop/trunkline.yaml': '' }), 'shop/trunkline.yaml');
    const user = checkFile('servers: { docs: { command: own } }', 'own.yaml');
    const resolved = ['first', 'second'].map((command) => {
      const checked = checkFile(`servers: { docs: { command: ${command} } }`, file, user.shared);
      return { config: resolveConfig(file, asProject(checked, file, user), OPTIONS), keys: ['docs'] };
    });
    const config = layered(resolveConfig('/own.yaml', user, OPTIONS), resolved, {
      ...{ projectOf: () => file, remarkOn: () => undefined, files: [], states: '' },
    });
    expect(config.servers.filter((server) => isForFolder(config, server, '/')).map(({ key }) => key)).toEqual(['docs']);
    expect(config.servers).toHaveLength(1);
    expect(config.warnings.join()).toContain('another project has the same keys');
  });
});

describe('the other keys of a project', () => {
  it('change nothing for the servers and the gateway of the user', () => {
    const own = 'servers: { docs: { command: own } }\ngateway: { idleStop: 7m }';
    const theirs = `servers: { db: { command: theirs } }
defaults: { timeout: 3s, env: { A: b } }
gateway: { idleStop: 1m, hub: off, record: /tmp/spy }
views: { v: {} }
clients: { "*": v }
secretCommand: { TOKEN: [sh, -c, evil] }`;
    const alone = layersOf(own, {}).config;
    const { config } = layersOf(own, { shop: theirs });
    expect(config.gateway).toEqual(alone.gateway);
    const [docs, db] = config.servers;
    expect(docs).toMatchObject({ timeoutMs: alone.servers[0]?.timeoutMs, spec: { env: {} } });
    expect(db).toMatchObject({ timeoutMs: 3_000, spec: { env: { A: 'b' } } });
  });
});

describe('the defaults of the user', () => {
  it('apply below those of a project, but for variables', () => {
    const own = 'servers: { docs: { command: own } }\ndefaults: { timeout: 3s, startTimeout: 4s, env: { SECRET: s } }';
    const { config } = layersOf(own, { shop: 'servers: { db: { command: x, startTimeout: 5s } }' });
    expect(config.servers[1]).toMatchObject({ timeoutMs: 3_000, spec: { env: {}, timeouts: { startMs: 5_000 } } });
  });

  it('keep their sandbox and their approval, which no project ends', () => {
    const own = 'servers: { docs: { command: own } }\ndefaults: { sandbox: true, approval: required }';
    const { config } = layersOf(own, { shop: 'servers: { db: { command: x, sandbox: false, approval: "off" } }' });
    expect(config.servers[1]).toMatchObject({ approval: 'required', spec: { sandbox: { network: [] } } });
  });

  it('have interceptors that look at the servers of a project, besides those of the project', () => {
    const own = 'servers: { docs: { command: own }, guard: { command: g } }\ndefaults: { interceptors: [guard] }';
    const { config, fileOf } = layersOf(own, {
      shop: 'servers: { db: { command: x, interceptors: [guard] }, guard: { command: theirs } }',
    });
    const theirs = keyInProject('guard', fileOf('shop'));
    const listed = config.servers.map(({ key, interceptors }) => [key, interceptors]);
    expect(listed).toEqual([
      ['docs', ['guard']],
      ['guard', undefined],
      [keyInProject('db', fileOf('shop')), ['guard', theirs]],
      [theirs, undefined],
    ]);
  });

  it('have the first rules, and a mistake in one of the project has its line', () => {
    const own = 'servers: { docs: { command: own } }\ndefaults: { rules: [{ tools: [rm], then: deny }] }';
    const theirs = `servers:
  db:
    command: x
    rules:
      - { tools: [rm], then: allow }
      - { tools: [ls], args: { a: ["\${NOT_SET}"] }, then: deny }`;
    const { config } = layersOf(own, { shop: theirs });
    expect(config.servers[1]?.problem).toMatchObject({ line: 6, message: expect.stringContaining('NOT_SET') });
    const sound = layersOf(own, { shop: theirs.replace(/.*NOT_SET.*/, '') }).config.servers[1];
    expect(sound?.rules?.map(({ verdict }) => verdict)).toEqual(['deny', 'allow']);
  });
});
