import fc from 'fast-check';

const SIDE = fc.constantFrom<0 | 1>(0, 1);
const WHICH = fc.nat({ max: 40 });

const CLIENT_EVENTS = [
  ...(['call', 'call', 'call', 'call', 'call', 'read', 'read', 'list', 'listen', 'ping', 'notify'] as const),
  ...(['input', 'input', 'input', 'input', 'again', 'again', 'forge', 'cancel'] as const),
];
const SERVER_EVENTS = [
  ...(['ask', 'ask', 'ask', 'ask undeclared', 'answer', 'answer', 'fail', 'answer late'] as const),
  ...(['progress', 'progress', 'log'] as const),
];
const FAULTS = [
  'garbage',
  'crash',
  'start',
  'hang',
  'break lists',
  'change tools',
  'reconfigure',
  'hub death',
  ...(['break network', 'break network', 'mend network', 'reset'] as const),
] as const;

/** The next event. Its numbers choose among the existing calls, server requests and servers. */
export const EVENT = fc.oneof(
  { weight: 9, arbitrary: fc.record({ kind: fc.constantFrom(...CLIENT_EVENTS), client: SIDE, which: WHICH }) },
  { weight: 9, arbitrary: fc.record({ kind: fc.constantFrom(...SERVER_EVENTS), which: WHICH }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom(...FAULTS), which: WHICH }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('wait'), ms: fc.constantFrom(15, 15, 15, 300, 1_000, 12_000, 61_000) }),
  },
);
export type Event = typeof EVENT extends fc.Arbitrary<infer Value> ? Value : never;

/** The clients, and what they share. */
export const SETTING = fc.record({
  areModern: fc.constantFrom<readonly [boolean, boolean]>([false, true], [true, true], [false, false]),
  hasOnePrincipal: fc.boolean(),
  isHub: fc.boolean(),
  areRemote: fc.boolean(),
  sharing: fc.constantFrom('profile', 'isolated', 'all'),
  /** Whether the clients are in search mode, and call every tool through `trunkline__call_tool`. */
  isSearch: fc.boolean(),
});
export type Setting = typeof SETTING extends fc.Arbitrary<infer Value> ? Value : never;
