import { Pairs } from './widgets.js';

/** Words of the page that not every reader knows. */
const WORDS = {
  parked: 'Failed five times in a row. Its tools are not listed; Trunkline tries again after minutes, or when asked.',
  failed: 'Its process has ended. Trunkline starts it again after a pause that grows with each failure.',
  silent: 'Has not answered for long. Trunkline asks for a sign of life, and restarts it without one.',
  'p50 / p95': 'Half of the latest calls took at most the first time, 95 of 100 at most the second.',
  instance: 'One process of a server. A server that clients do not share has one for each client.',
  breaker: 'Guard of a server that runs and answers badly. Closed, calls pass; open, they are refused at once.',
  'legacy, modern':
    'Eras of the protocol: legacy revisions open a session first, modern ones send each request on its own.',
  isolated: 'Each client has a process of its own.',
  profile: 'Clients that introduce themselves alike share a process.',
  view: 'Part of the servers and tools that the configuration shows to some clients.',
  revision: 'Version of the protocol that both ends speak, named by its date.',
} as const;

/** Explains words of a part, on request. */
export function Help({ words }: { words: readonly (keyof typeof WORDS)[] }) {
  return (
    <details class="help">
      <summary>What the words mean</summary>
      <Pairs rows={words.map((word) => [word, WORDS[word]])} />
    </details>
  );
}
