// An npm registry on this machine, so that tests install packages with the real npm and without a network.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PROGRAM = readFileSync(fileURLToPath(new URL('../fixtures/packages/server.mjs', import.meta.url)));

export interface PublishOptions {
  readonly version: string;
  /** Its dist-tag; without one the version becomes `latest`. */
  readonly tag?: string;
  /** Names of its tools, or their definitions. */
  readonly tools?: readonly (string | Readonly<Record<string, unknown>>)[];
  /** Whether it starts, but does not list its tools. */
  readonly isUnlisted?: boolean;
  /** Text that it writes before it fails to start. */
  readonly fault?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  /** The versions of Node that it declares to need. */
  readonly node?: string;
  /** Has a program to run while it is installed. */
  readonly hasInstallScript?: boolean;
  /** A command line that it runs while it is installed. */
  readonly installScript?: string;
}

interface Version {
  readonly tag: string;
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly tarball: Buffer;
}

/** An npm registry on this machine, with the packages that a test publishes. npm itself is the real one. */
export class Registry {
  /** The packages that npm downloaded, in order, as `name@version`. */
  readonly downloads: string[] = [];
  readonly #packages = new Map<string, Map<string, Version>>();
  readonly #server = createServer((request, response) => this.#answer(decodeURIComponent(request.url ?? ''), response));
  #held: (() => void)[] | undefined;

  /** Listens on a port of its own; `published` is a registry whose packages it has from the start. */
  static async open(published?: Registry): Promise<Registry> {
    const registry = new Registry();
    if (published !== undefined) {
      for (const [name, versions] of published.#packages) registry.#packages.set(name, new Map(versions));
    }
    await new Promise<void>((resolve) => registry.#server.listen(0, '127.0.0.1', resolve));
    return registry;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  /** The variables that make npm use this registry and none of this machine's settings; `folder` is for its cache. */
  environment(folder: string): Record<string, string> {
    return {
      npm_config_registry: this.url,
      npm_config_cache: `${folder}/npm-cache`,
      npm_config_userconfig: `${folder}/npmrc`,
      npm_config_noproxy: '127.0.0.1',
      npm_config_fetch_retries: '0',
    };
  }

  publish(name: string, options: PublishOptions): void {
    const { version, tag = 'latest', tools = ['greet'], isUnlisted = false } = options;
    const { fault, dependencies, node, installScript } = options;
    const { hasInstallScript = installScript !== undefined } = options;
    const definitions = tools.map((tool) =>
      typeof tool === 'string' ? { name: tool, inputSchema: { type: 'object' } } : tool,
    );
    const manifest = {
      name,
      version,
      bin: { [name.slice(name.indexOf('/') + 1)]: 'server.mjs' },
      ...(!isUnlisted && { tools: definitions }),
      ...(fault && { fault }),
      ...(dependencies && { dependencies }),
      ...(node && { engines: { node } }),
      ...(hasInstallScript && { scripts: { install: installScript ?? 'node server.mjs install' } }),
    };
    const tarball = pack({
      'package.json': JSON.stringify(manifest),
      'server.mjs': PROGRAM,
    });
    const versions = this.#packages.get(name) ?? new Map<string, Version>();
    this.#packages.set(name, versions.set(version, { tag, manifest: { ...manifest, hasInstallScript }, tarball }));
  }

  /** Lets downloads wait from now on, until `release`. */
  hold(): void {
    this.#held ??= [];
  }

  /** Number of waiting downloads. */
  get waiting(): number {
    return this.#held?.length ?? 0;
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const go of held) go();
  }

  async close(): Promise<void> {
    this.release();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer(path: string, response: ServerResponse): void {
    const [, name = '', version] = /^\/((?:@[^/]+\/)?[^/]+)(?:\/-\/(.+)\.tgz)?$/.exec(path) ?? [];
    const versions = this.#packages.get(name);
    const found = version === undefined ? undefined : versions?.get(version);
    if (versions === undefined || (version !== undefined && found === undefined)) {
      response.writeHead(404).end('{}');
    } else if (found === undefined) {
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(this.#describe(name, versions)));
    } else {
      const send = () => {
        this.downloads.push(`${name}@${version}`);
        response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(found.tarball);
      };
      if (this.#held === undefined) send();
      else this.#held.push(send);
    }
  }

  #describe(name: string, versions: ReadonlyMap<string, Version>): object {
    const described = [...versions].map(([version, { manifest, tarball }]) => {
      const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
      return [version, { ...manifest, dist: { tarball: `${this.url}${name}/-/${version}.tgz`, integrity } }] as const;
    });
    const tags = Object.fromEntries([...versions].map(([version, { tag }]) => [tag, version]));
    return { name, 'dist-tags': tags, versions: Object.fromEntries(described) };
  }
}

/** A compressed tar archive of these files of one package. */
function pack(files: Readonly<Record<string, string | Buffer>>): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-'));
  mkdirSync(join(folder, 'package'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, 'package', name), content);
  try {
    return execFileSync('tar', ['-czf', '-', '-C', folder, 'package']);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
