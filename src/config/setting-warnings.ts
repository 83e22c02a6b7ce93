import type { ConfigProblem } from './config-error.js';
import { formatPath } from './format-path.js';
import { type HttpSection, toHttpConfig } from './http-settings.js';
import { type ServerEntry, type Tunables, withDefaults } from './schema.js';
import type { YamlSource } from './yaml-source.js';

/** Warnings about settings of the server at `path` that another setting makes ineffective. */
export function settingWarnings(
  entry: ServerEntry,
  defaults: Tunables,
  path: readonly string[],
  source: YamlSource,
): ConfigProblem[] {
  const { timeout, maxTimeout, restart } = withDefaults(entry, defaults);
  const pairs = [
    ['timeout', timeout, 'maxTimeout', maxTimeout],
    ['restart.firstDelay', restart.firstDelay, 'restart.maxDelay', restart.maxDelay],
    ['restart.parkedProbe', restart.parkedProbe, 'restart.parkedProbeMax', restart.parkedProbeMax],
  ] as const;
  return pairs
    .filter(([, value, , limit]) => value > limit)
    .map(([name, , limitName]) => ({
      message: `${formatPath(path)}: ${name} is longer than ${limitName}, so ${limitName} applies; change one of them`,
      ...source.positionOfKey(path),
    }));
}

/** Warnings about settings of the gateway that another setting makes ineffective. */
export function gatewayWarnings({ http }: { readonly http?: HttpSection }, source: YamlSource): ConfigProblem[] {
  if (http === undefined) return [];
  const { maxSessions, maxConnections } = toHttpConfig(http);
  if (maxSessions <= maxConnections) return [];
  const path = ['gateway', 'http'];
  return [
    {
      message: `${formatPath(path)}: maxSessions (${maxSessions}) is greater than maxConnections (${maxConnections}), but each listening client holds a connection; raise maxConnections`,
      ...source.positionOfKey(path),
    },
  ];
}
