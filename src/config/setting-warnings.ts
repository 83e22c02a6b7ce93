import type { ConfigProblem } from './config-error.js';
import { formatPath } from './format-path.js';
import { type HttpSection, toHttpConfig } from './http-settings.js';
import { type ServerEntry, type Tunables, withDefaults } from './schema.js';
import type { YamlSource } from './yaml-source.js';

/** Settings of the server at `path` that cannot take effect next to one another. */
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
      message: `${formatPath(path)}: ${name} is longer than ${limitName}, which wins`,
      ...source.positionOfKey(path),
    }));
}

/** Settings of the gateway itself that cannot take effect next to one another. */
export function gatewayWarnings({ http }: { readonly http?: HttpSection }, source: YamlSource): ConfigProblem[] {
  if (http === undefined) return [];
  const { maxSessions, maxConnections } = toHttpConfig(http);
  if (maxSessions <= maxConnections) return [];
  const path = ['gateway', 'http'];
  return [
    {
      message: `${formatPath(path)}: maxSessions (${maxSessions}) is more than maxConnections (${maxConnections}); each client that listens holds a connection`,
      ...source.positionOfKey(path),
    },
  ];
}
