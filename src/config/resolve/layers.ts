import { createHash } from 'node:crypto';
import { basename, dirname } from 'node:path';
import { printable } from '../../wire/json/printable.js';
import type { CheckedFile } from '../file/check-file.js';
import { type Config, foldedKey, type Layers, type ServerConfig } from './config.js';

/*
 * Layers: the configuration of a project beside that of the user. A project's servers have keys of their own in the gateway, such as
 * `docs@shop-` with a digest, and are for clients in the folder of the project only, where they replace the user's servers of the same key. So
 * the server of the user goes on for everybody else.
 */

/** The key in the gateway of a project's server. No key of a file has an `@`, so that it is no key of the user. */
export function keyInProject(key: string, file: string): string {
  const name = basename(dirname(file)).replace(/[^A-Za-z0-9]+/g, '-');
  const digest = createHash('sha256').update(file).digest('hex').slice(0, DIGEST_LENGTH);
  return `${key}@${name.replace(/^-|-$/g, '').slice(0, MAX_NAME_LENGTH)}-${digest}`;
}

/** Length in hexadecimal digits. Processes, approvals and logins belong to the key, so nobody may find two paths with the same digest. */
const DIGEST_LENGTH = 32;
const MAX_NAME_LENGTH = 24;

/**
 * The parts of a project's file that count: its servers, which have the settings of its `defaults` already. The gateway and the commands for secrets
 * are those of the user.
 */
export function asProject(project: CheckedFile, file: string, user: CheckedFile): CheckedFile {
  const servers = project.servers.map(({ key, interceptors = [], ...server }) => {
    // The interceptors of the user look at these servers, too, but at no interceptor, as in one file.
    const all = [...user.shared.interceptors, ...interceptors.map((name) => keyInProject(name, file))];
    const guards = server.isInterceptor === true || all.length === 0 ? {} : { interceptors: all };
    return { ...server, key: keyInProject(key, file), ...guards };
  });
  const { tracing: _, cluster: __, ...gateway } = user.gateway;
  return { ...project, servers, gateway, secretCommands: user.secretCommands };
}

/** A project's file, resolved with the keys of `asProject`. */
export interface ResolvedProject {
  readonly config: Config;
  /** The keys of the file, also those of servers that are `disabled`: each hides the user's server of this key. */
  readonly keys: readonly string[];
}

/**
 * Adds the servers of projects to the configuration of the user. Everything else is that of the user. Refuses all projects that would share
 * a key, because one would get the processes, approvals and logins of the other.
 */
export function layered(user: Config, all: readonly ResolvedProject[], layers: Omit<Layers, 'hidden'>): Config {
  const counts = new Map<string, number>();
  for (const key of all.flatMap(keysInGateway)) counts.set(key, (counts.get(key) ?? 0) + 1);
  const isShared = (project: ResolvedProject) => keysInGateway(project).some((key) => (counts.get(key) ?? 0) > 1);
  const projects = all.filter((project) => !isShared(project));
  const refused = all
    .filter(isShared)
    .map(
      ({ config }) => `${printable(config.file)} is not used, because another project has the same keys in the gateway`,
    );
  const own = new Set([...user.servers.map(({ key }) => key), ...user.disabled].map(foldedKey));
  const marked = projects.map(({ config, keys }) => {
    const byKey = new Map(keys.map((key) => [keyInProject(key, config.file), key]));
    const mark = (server: ServerConfig): ServerConfig => {
      const key = byKey.get(server.key) ?? server.key;
      // Names of tools begin with the key in the file.
      const prefix = server.prefix === server.key ? key : server.prefix;
      return { ...server, prefix, layer: { file: config.file, key, hides: own.has(foldedKey(key)) } };
    };
    return { config, mark };
  });
  return {
    ...user,
    servers: [...user.servers, ...marked.flatMap(({ config, mark }) => config.servers.map(mark))],
    warnings: [...user.warnings, ...projects.flatMap(({ config }) => config.warnings), ...refused],
    envFiles: [...user.envFiles, ...projects.flatMap(({ config }) => config.envFiles)],
    serverFor: (key, origin) => {
      for (const { config, mark } of marked) {
        const found = config.serverFor(key, origin);
        if (found !== undefined) return mark(found);
      }
      return user.serverFor(key, origin);
    },
    layers: {
      ...layers,
      hidden: new Map(projects.map(({ config, keys }) => [config.file, new Set(keys.map(foldedKey))])),
    },
  };
}

function keysInGateway({ config, keys }: ResolvedProject): string[] {
  return keys.map((key) => keyInProject(key, config.file));
}
