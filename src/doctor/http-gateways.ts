import { CODE_OF } from '../gateway/status/status-facts.js';
import type { FoundFront } from '../state/http-gateway-file.js';
import { type Finding, finding } from './finding.js';

export interface HttpFrontsFacts {
  /** The Trunklines that serve HTTP now. */
  readonly fronts: readonly FoundFront[];
  /** The configuration that the doctor checks; `undefined` if it cannot be used. */
  readonly configFile: string | undefined;
  /** The pid of the hub of this configuration, if it runs. */
  readonly hub: number | undefined;
  readonly now: number;
}

const RECENT_MS = 24 * 60 * 60 * 1_000;

/** What the Trunklines that serve HTTP have refused in the last day, and whether one runs the servers of another one, too. */
export function checkHttpFronts(facts: HttpFrontsFacts): Finding[] {
  return [...checkTwice(facts), ...facts.fronts.flatMap((front) => checkRefused(front, facts.now))];
}

function checkTwice({ fronts, configFile, hub }: HttpFrontsFacts): Finding[] {
  const same = fronts.filter((front) => front.configFile === configFile);
  const names = [
    ...(hub === undefined ? [] : [`the hub ${hub}`]),
    ...same.map(({ pid, url }) => `Trunkline ${pid} at ${url}`),
  ];
  if (configFile === undefined || names.length < 2) return [];
  return [
    finding('TL-RUN-TWICE', `${names.join(' and ')} run the servers of the same configuration`, {
      evidence: [configFile],
    }),
  ];
}

function checkRefused({ pid, url, refused }: FoundFront, now: number): Finding[] {
  return refused
    .filter(({ at }) => now - at <= RECENT_MS)
    .map(({ header, count, last, at }) => {
      const requests = count === 1 ? 'one request' : `${count} requests`;
      const text = `Trunkline ${pid} at ${url} refused ${requests} for the ${header} header`;
      return finding(CODE_OF[header], text, { evidence: [`last: ${last}, at ${new Date(at).toISOString()}`] });
    });
}
