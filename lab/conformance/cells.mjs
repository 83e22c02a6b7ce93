// What is measured: the revision that the suite speaks, the era of the server, and what has to pass.

/** The last stable version, and the one that also checks every message against the schema of the protocol. */
const STABLE = '0.1.16';
const STRICT = '0.2.0-alpha.12';

const OWN_KEYS = 'The scenario expects a request under the key user_name, and a server of 2025-11-25 has no keys';
const WITHOUT_KEYS = {
  'input-required-result-basic-elicitation': OWN_KEYS,
  'input-required-result-ignore-extra-params': `${OWN_KEYS}. It answers before it is asked`,
};

const OF_CALL_TOOL = {
  'http-custom-header-server-validation':
    'The headers repeat parameters of the tool that is called. That is trunkline__call_tool, whose parameters have no headers',
};
const WARM_UP = {
  Trunkline: 'server-stateless',
  'Trunkline (URL)': 'server-stateless',
  'Trunkline (call_tool)': 'server-stateless',
};

/**
 * A cell names the `protocol` of the suite, the `era` of the fixture, and the number of scenarios that each version of the
 * suite has for that protocol. Every target in `missing` runs all of them. Those listed there do not pass yet, for the
 * reason given; all others have to pass. One that is listed and passes has to be removed from the list.
 *
 * `warmUp` is a scenario that runs once before it counts. `server-stateless` gives a call of a client with new capabilities
 * 600 ms, and for such a client, Trunkline may have to start another process of the server.
 */
export const CELLS = {
  '2025-11-25 x legacy': {
    protocol: '2025-11-25',
    era: 'legacy',
    scenarios: { [STABLE]: 32, [STRICT]: 33 },
    missing: { direct: {}, Trunkline: {}, 'Trunkline (URL)': {}, 'Trunkline (call_tool)': {} },
  },
  '2026-07-28 x modern': {
    protocol: '2026-07-28',
    era: 'modern',
    scenarios: { [STRICT]: 40 },
    warmUp: WARM_UP,
    missing: { direct: {}, Trunkline: {}, 'Trunkline (URL)': {}, 'Trunkline (call_tool)': OF_CALL_TOOL },
  },
  '2025-11-25 x modern': {
    protocol: '2025-11-25',
    era: 'modern',
    scenarios: { [STRICT]: 33 },
    missing: { Trunkline: {}, 'Trunkline (URL)': {}, 'Trunkline (call_tool)': {} },
  },
  '2026-07-28 x legacy': {
    protocol: '2026-07-28',
    era: 'legacy',
    scenarios: { [STRICT]: 40 },
    warmUp: WARM_UP,
    missing: {
      Trunkline: WITHOUT_KEYS,
      'Trunkline (URL)': WITHOUT_KEYS,
      'Trunkline (call_tool)': { ...WITHOUT_KEYS, ...OF_CALL_TOOL },
    },
  },
};
