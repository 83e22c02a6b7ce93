import type { ServerReport } from '../../status/status.js';
import { STATE_WORDS } from '../../status/status-text.js';
import { matches } from './text.js';

export const FILTER_ABOVE = 12;

type Tone = 'good' | 'busy' | 'bad' | 'off';

const TONES: Readonly<Record<ServerReport['state'], Tone>> = {
  ready: 'good',
  idle: 'off',
  stopped: 'off',
  starting: 'busy',
  installing: 'busy',
  stopping: 'busy',
  suspect: 'bad',
  backoff: 'bad',
  offline: 'bad',
  blocked: 'bad',
  parked: 'bad',
  misconfigured: 'bad',
  'per user': 'off',
};

export function toneOf(state: ServerReport['state']): Tone {
  return TONES[state] ?? 'off';
}

interface Listed {
  readonly server: string;
  readonly state: ServerReport['state'];
  readonly problem: string;
  readonly restarts: number;
}

/** Whether a person has to look at a server. A server that keeps restarting counts as broken also while it starts. */
function isBroken({ state, problem, restarts }: Listed): boolean {
  const tone = toneOf(state);
  return tone === 'bad' || problem !== '' || (tone === 'busy' && restarts > 0);
}

/** Broken servers first, then those that start, then all others. The order of the configuration decides among equals. */
export function brokenFirst<T extends Listed>(servers: readonly T[]): readonly T[] {
  const rank = (server: T) => (isBroken(server) ? 0 : toneOf(server.state) === 'busy' ? 1 : 2);
  return servers.toSorted((one, other) => rank(one) - rank(other));
}

/** Servers whose name, state or problem has all words, and whose state has this word; '' allows all states. */
export function filterServers<T extends Listed>(servers: readonly T[], words: string, state: string): readonly T[] {
  return servers.filter(({ server, problem, ...each }) => {
    const word = STATE_WORDS[each.state];
    return (state === '' || state === word) && matches(`${server} ${word} ${problem}`, words);
  });
}
