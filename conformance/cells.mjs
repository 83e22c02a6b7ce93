// What is measured: the revision that the suite speaks, the era of the server, and what has to pass.

/** The last stable version, and the one that also checks every message against the schema of the protocol. */
const STABLE = '0.1.16';
const STRICT = '0.2.0-alpha.12';

const NO_MODERN_CLIENTS = `
  server-stateless completion-complete tools-list tools-call-simple-text tools-call-image tools-call-audio
  tools-call-embedded-resource tools-call-mixed-content tools-call-error tools-call-with-progress json-schema-2020-12
  server-sse-multiple-streams resources-list resources-read-text resources-read-binary resources-templates-read
  sep-2164-resource-not-found prompts-list prompts-get-simple prompts-get-with-args prompts-get-embedded-resource
  prompts-get-with-image dns-rebinding-protection caching http-header-validation http-custom-header-server-validation
  input-required-result-basic-elicitation input-required-result-basic-sampling input-required-result-basic-list-roots
  input-required-result-request-state input-required-result-multiple-input-requests input-required-result-multi-round
  input-required-result-missing-input-response input-required-result-non-tool-request
  input-required-result-result-type input-required-result-unsupported-methods input-required-result-tampered-state
  input-required-result-capability-check input-required-result-ignore-extra-params
`;
const NO_MODERN_SERVERS = `
  completion-complete tools-call-simple-text tools-call-image tools-call-audio tools-call-embedded-resource
  tools-call-mixed-content tools-call-with-logging tools-call-error tools-call-with-progress tools-call-sampling
  tools-call-elicitation json-schema-2020-12 elicitation-sep1034-defaults server-sse-polling
  elicitation-sep1330-enums resources-read-text resources-read-binary resources-templates-read resources-subscribe
  resources-unsubscribe prompts-get-simple prompts-get-with-args prompts-get-embedded-resource prompts-get-with-image
`;

/**
 * A cell names the `protocol` of the suite, the `era` of the fixture, and the number of scenarios that each version of the
 * suite has for that protocol. Every target in `missing` runs all of them. Those listed there do not pass yet, for the
 * reason given; all others have to pass. One that is listed and passes has to be removed from the list.
 */
export const CELLS = {
  '2025-11-25 x legacy': {
    protocol: '2025-11-25',
    era: 'legacy',
    scenarios: { [STABLE]: 32, [STRICT]: 33 },
    missing: { direct: {}, Trunkline: {} },
  },
  '2026-07-28 x modern': {
    protocol: '2026-07-28',
    era: 'modern',
    scenarios: { [STRICT]: 40 },
    missing: {
      direct: {},
      Trunkline: because('Trunkline serves no clients of revision 2026-07-28 over HTTP', NO_MODERN_CLIENTS),
    },
  },
  '2025-11-25 x modern': {
    protocol: '2025-11-25',
    era: 'modern',
    scenarios: { [STRICT]: 33 },
    missing: { Trunkline: because('Trunkline runs no servers of revision 2026-07-28', NO_MODERN_SERVERS) },
  },
  '2026-07-28 x legacy': {
    protocol: '2026-07-28',
    era: 'legacy',
    scenarios: { [STRICT]: 40 },
    missing: {
      Trunkline: because('Trunkline serves no clients of revision 2026-07-28 over HTTP', NO_MODERN_CLIENTS),
    },
  },
};

/** The names, each with this reason. */
function because(reason, names) {
  return Object.fromEntries(
    names
      .trim()
      .split(/\s+/)
      .map((name) => [name, reason]),
  );
}
