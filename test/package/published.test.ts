// Descriptions of the package where it is published: npm, the official registry of MCP, and the Desktop extension.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { manifestOf } from '../../scripts/manifest.mjs';
import { registryNameFault } from '../../scripts/registry-name.mjs';

const read = (file: string) => JSON.parse(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8'));
const own = read('package.json');
const server = read('server.json');

/** The shape that the registry accepts for packages of npm, in its schema of this day. */
const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json';
const INPUT = { description: z.string(), format: z.enum(['string', 'number', 'boolean', 'filepath']) };
const SERVER = z.strictObject({
  $schema: z.literal(SCHEMA),
  name: z
    .string()
    .max(200)
    .regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/),
  title: z.string().min(1).max(100),
  description: z.string().min(1).max(100),
  // A version, never a range or `latest`.
  version: z.string().regex(/^\d+\.\d+\.\d+(?:-[\w.]+)?$/),
  packages: z.array(
    z.strictObject({
      registryType: z.literal('npm'),
      identifier: z.string(),
      version: z.string(),
      runtimeHint: z.literal('npx'),
      packageArguments: z.array(
        z.strictObject({ type: z.literal('named'), name: z.string(), isRequired: z.boolean(), ...INPUT }),
      ),
      transport: z.strictObject({ type: z.literal('stdio') }),
    }),
  ),
});

describe('server.json, for the official registry', () => {
  it('has the shape that the registry accepts', () => {
    expect(SERVER.safeParse(server).error?.issues).toBeUndefined();
  });

  it('names the package and the version of package.json', () => {
    const [{ identifier, version }] = server.packages;
    expect([server.version, version, identifier]).toEqual([own.version, own.version, own.name]);
  });

  it('has the name by which package.json proves that both are of the same owner', () => {
    expect(server.name).toBe(own.mcpName);
  });
});

it('the package has no script that npm runs, or warns of, when it installs the package from a file', () => {
  const scripts = ['preinstall', 'install', 'postinstall', 'preprepare', 'prepare', 'postprepare'];
  expect(Object.keys(own.scripts).filter((name) => scripts.includes(name))).toEqual([]);
});

describe('npm publish', () => {
  it('is stopped while OWNER stands for the owner, or the two files name different ones', () => {
    expect(own.scripts.prepublishOnly).toBe('node scripts/before-publish.mjs');
    const name = 'io.github.OWNER/trunkline';
    const other = 'io.github.somebody/trunkline';
    expect(registryNameFault({ mcpName: name }, { name })).toContain('in `mcpName` of package.json and in `name` of');
    expect(registryNameFault({ mcpName: other }, { name })).toContain('OWNER in io.github.OWNER/trunkline');
    expect(registryNameFault({ mcpName: other }, { name: 'io.github.nobody/trunkline' })).toContain('the same name');
    expect(registryNameFault({ mcpName: other }, { name: other })).toBeUndefined();
  });
});

describe('package.json', () => {
  it('has no dependencies: all that Trunkline uses is bundled', () => {
    const members = ['dependencies', 'optionalDependencies', 'peerDependencies'];
    expect(members.filter((member) => Object.hasOwn(own, member))).toEqual([]);
  });
});

describe('the manifest of the Desktop extension', () => {
  const manifest = manifestOf(own);

  it('has the version, the program and the versions of Node of package.json', () => {
    expect(manifest).toMatchObject({ manifest_version: '0.3', name: own.name, version: own.version });
    expect(manifest.server.entry_point).toBe(own.bin.trunkline);
    expect(manifest.compatibility).toEqual({ platforms: ['darwin', 'win32'], runtimes: { node: own.engines.node } });
  });

  it('names no file by default, so that Trunkline looks in the usual places of each system', () => {
    const { config } = manifest.user_config;
    expect(config).toMatchObject({ required: false, default: '' });
    const [program = '', ...args] = manifest.server.mcp_config.args;
    expect(program.endsWith(manifest.server.entry_point)).toBe(true);
    expect(args).toEqual(['--config', `$\{user_config.config}`]);
  });

  it('uses only variables that Desktop replaces', () => {
    const text = JSON.stringify(manifest.server);
    const variables = [...text.matchAll(/\$\{([^}]+)\}/g)].map(([, name]) => name);
    expect(new Set(variables)).toEqual(new Set(['__dirname', 'user_config.config']));
  });
});

describe('the workflow', () => {
  it('runs the tests on three systems and every supported major version of Node', () => {
    const text = readFileSync(new URL('../../.github/workflows/check.yml', import.meta.url), 'utf8');
    const { jobs } = parse(text);
    expect(jobs.check.strategy.matrix).toEqual({
      os: ['ubuntu-latest', 'macos-latest', 'windows-latest'],
      node: [20, 22, 24],
    });
    expect(jobs.check['continue-on-error']).toContain("matrix.os != 'ubuntu-latest'");
    expect(jobs.check.steps.at(-1)).toMatchObject({ if: 'failure()', with: { path: '*.log' } });
    expect(jobs.system.steps.at(-1).run).toBe('npm run test:system');
    const scripts = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, script = '']) => script);
    expect(scripts.filter((script) => !Object.hasOwn(own.scripts, script))).toEqual([]);
  });
});
