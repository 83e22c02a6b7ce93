import { createOwnTool, type OwnTool, readServerArgument, textResult, type VisibleBackends } from './own-tool.js';
import { reportStatus } from './status.js';
import type { StatusFacts } from './status-facts.js';
import { renderStatus } from './status-text.js';

/**
 * `trunkline__status`: how each server is, why, and what to do about it. A `notice` stands before its description,
 * where a model reads it without asking.
 */
export function createStatusTool(facts: (seen: VisibleBackends) => StatusFacts, notice?: string): OwnTool {
  const description = notice === undefined ? DEFINITION.description : `${notice}\n\n${DEFINITION.description}`;
  return createOwnTool({ ...DEFINITION, description }, (args, seen) => {
    const now = facts(seen);
    const chosen = readServerArgument(
      args,
      now.servers.map(({ backend }) => backend.key),
    );
    if (chosen.fault !== undefined) return textResult(chosen.fault, true);
    const report = reportStatus(now, chosen.server);
    return { ...textResult(renderStatus(report)), structuredContent: { ...report } };
  });
}

const NULLABLE_NUMBER = { type: ['number', 'null'] };
const NULLABLE_STRING = { type: ['string', 'null'] };
const COUNT = { type: 'integer', minimum: 0 };
const STRINGS = { type: 'array', items: { type: 'string' } };

const LIMIT_SCHEMA = object({ now: COUNT, max: COUNT, refused: COUNT });

const LIST_SCHEMA = object({
  exposed: STRINGS,
  quarantined: { type: 'array', items: object({ name: { type: 'string' }, reason: { type: 'string' } }) },
  denied: STRINGS,
  truncated: NULLABLE_STRING,
  hiding: { ...STRINGS, description: 'Listed, but with characters in their descriptions that nobody sees' },
});

const SERVER_SCHEMA = object({
  server: { type: 'string', description: 'Key of the server in the configuration' },
  state: {
    enum: [
      ...['stopped', 'idle', 'installing', 'starting', 'ready', 'suspect', 'stopping', 'backoff', 'parked'],
      'misconfigured',
    ],
  },
  pid: NULLABLE_NUMBER,
  uptimeSeconds: NULLABLE_NUMBER,
  generation: { ...COUNT, description: 'How many times a process was launched for it' },
  restarts: COUNT,
  protocolVersion: NULLABLE_STRING,
  fromLastRun: {
    type: 'boolean',
    description: 'Whether what is listed was read in the last run and not in this one yet',
  },
  breaker: { enum: ['closed', 'open', 'half-open'] },
  inFlight: COUNT,
  queued: COUNT,
  calls: COUNT,
  errors: { ...COUNT, description: 'Calls that the server answered with an error' },
  failures: { ...COUNT, description: 'Calls that the server could not answer' },
  failureReasons: { type: 'object', additionalProperties: COUNT },
  cancelled: COUNT,
  repeated: { ...COUNT, description: 'Calls that went to a second process because the first one ended' },
  latencyMs: { anyOf: [object({ p50: { type: 'number' }, p95: { type: 'number' } }), { type: 'null' }] },
  tools: LIST_SCHEMA,
  approval: {
    anyOf: [
      object({
        approved: { ...COUNT, description: 'Tools that are approved, listed or not' },
        firstUse: { type: 'boolean', description: 'Whether they were approved in this run, as the first ones' },
        fault: NULLABLE_STRING,
      }),
      { type: 'null' },
    ],
    description: 'Where tools of this server have to be approved',
  },
  prompts: LIST_SCHEMA,
  resources: LIST_SCHEMA,
  resourceTemplates: LIST_SCHEMA,
  dropped: { type: 'object', additionalProperties: COUNT, description: 'Frames of the server that were dropped' },
  lastExit: {
    anyOf: [
      object({ code: NULLABLE_NUMBER, signal: NULLABLE_STRING, secondsAgo: { type: 'number' } }),
      { type: 'null' },
    ],
  },
  lastFailure: NULLABLE_STRING,
  retryInSeconds: NULLABLE_NUMBER,
  installing: {
    anyOf: [object({ package: { type: 'string' }, forSeconds: { type: 'number' } }), { type: 'null' }],
    description: 'What is being installed for it at the moment',
  },
  log: STRINGS,
  droppedLogLines: COUNT,
  advice: { type: 'string', description: 'What the person can do' },
  instructions: NULLABLE_STRING,
  instances: {
    type: 'array',
    description: 'The processes that run for this server',
    items: object({
      id: { type: 'string' },
      state: { type: 'string' },
      pid: NULLABLE_NUMBER,
      clients: COUNT,
      inFlight: COUNT,
      restarts: COUNT,
      isYours: { type: 'boolean', description: 'Whether it is the one that answers you' },
    }),
  },
});

const DEFINITION = {
  name: 'trunkline__status',
  title: 'Status of all servers',
  description:
    'Shows how the MCP servers behind Trunkline are: state, restarts, load, latency, hidden tools, last errors, and what to do. Use it when a tool is missing or a call failed.',
  inputSchema: {
    type: 'object' as const,
    properties: { server: { type: 'string', description: 'Only this server, with more of its log' } },
    additionalProperties: false,
  },
  outputSchema: object({
    version: { type: 'string' },
    uptimeSeconds: { type: 'number' },
    configFile: NULLABLE_STRING,
    configFault: { ...NULLABLE_STRING, description: 'What is wrong with the configuration file as it is now' },
    configFaultSeconds: NULLABLE_NUMBER,
    configInForce: { enum: ['current', 'previous', 'none'] },
    configReloads: COUNT,
    configNeedsRestart: STRINGS,
    tools: COUNT,
    advice: { type: 'string', description: 'What the person can do about Trunkline as a whole' },
    limits: object({ waitingCalls: LIMIT_SCHEMA, partialFrameBytes: LIMIT_SCHEMA }),
    internalErrorCount: { ...COUNT, description: 'Errors in Trunkline itself that failed one request each' },
    servers: { type: 'array', items: SERVER_SCHEMA },
  }),
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
};

/** A schema whose members are all there, always. */
function object(properties: Record<string, object>) {
  return { type: 'object' as const, properties, required: Object.keys(properties) };
}
