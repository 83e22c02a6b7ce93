import { createOwnTool, type OwnTool, readServerArgument, textResult, type VisibleBackends } from './own-tool.js';
import { reportStatus } from './status.js';
import type { StatusFacts } from './status-facts.js';
import { renderStatus } from './status-text.js';

/**
 * Makes `trunkline__status`, which shows the state of each server, the reason, and what to do. A `notice` comes before
 * the description of the tool, because a model reads it there without a call.
 */
export function createStatusTool(facts: (visible: VisibleBackends) => StatusFacts, notice?: string): OwnTool {
  const description = notice === undefined ? DEFINITION.description : `${notice}\n\n${DEFINITION.description}`;
  return createOwnTool({ ...DEFINITION, description }, (args, visible) => {
    const now = facts(visible);
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
  hiding: { ...STRINGS, description: 'Listed entries with invisible characters in their descriptions' },
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
  generation: { ...COUNT, description: 'How many processes were started for this server' },
  restarts: COUNT,
  protocolVersion: NULLABLE_STRING,
  fromLastRun: {
    type: 'boolean',
    description: 'Whether the lists come from the cache of the last run and are not confirmed yet',
  },
  breaker: { enum: ['closed', 'open', 'half-open'] },
  inFlight: COUNT,
  queued: COUNT,
  calls: COUNT,
  errors: { ...COUNT, description: 'Calls that the server answered with an error' },
  failures: { ...COUNT, description: 'Calls that Trunkline answered because the server could not' },
  failureReasons: { type: 'object', additionalProperties: COUNT },
  cancelled: COUNT,
  repeated: { ...COUNT, description: 'Calls that were repeated on a second process because the first one ended' },
  latencyMs: { anyOf: [object({ p50: { type: 'number' }, p95: { type: 'number' } }), { type: 'null' }] },
  tools: LIST_SCHEMA,
  approval: {
    anyOf: [
      object({
        approved: { ...COUNT, description: 'Approved tools, listed or not' },
        firstUse: {
          type: 'boolean',
          description: 'Whether the first tools of this server were approved automatically in this run',
        },
        fault: NULLABLE_STRING,
      }),
      { type: 'null' },
    ],
    description: 'State of the approvals; null if the tools of this server need no approval',
  },
  prompts: LIST_SCHEMA,
  resources: LIST_SCHEMA,
  resourceTemplates: LIST_SCHEMA,
  dropped: {
    type: 'object',
    additionalProperties: COUNT,
    description: 'Messages of the server that were dropped, by kind',
  },
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
    description: 'The package that is being installed for this server',
  },
  cause: { ...STRINGS, description: 'Lines of its output that name the cause of the latest failure' },
  log: STRINGS,
  droppedLogLines: COUNT,
  advice: { type: 'string', description: 'What a person can do' },
  instructions: NULLABLE_STRING,
  instances: {
    type: 'array',
    description: 'The processes of this server',
    items: object({
      id: { type: 'string' },
      state: { type: 'string' },
      pid: NULLABLE_NUMBER,
      clients: COUNT,
      inFlight: COUNT,
      restarts: COUNT,
      isYours: { type: 'boolean', description: 'Whether this process serves the client that called this tool' },
    }),
  },
});

const DEFINITION = {
  name: 'trunkline__status',
  title: 'Status of all servers',
  description:
    'Shows the MCP servers behind Trunkline: state, restarts, load, latency, hidden tools, last errors, and what to do. Use it when a tool is missing or a call failed.',
  inputSchema: {
    type: 'object' as const,
    properties: {
      server: { type: 'string', description: 'Key of a server: shows only this server, with more log lines' },
    },
    additionalProperties: false,
  },
  outputSchema: object({
    version: { type: 'string' },
    uptimeSeconds: { type: 'number' },
    configFile: NULLABLE_STRING,
    configFault: { ...NULLABLE_STRING, description: 'What is wrong with the current configuration file' },
    configFaultSeconds: NULLABLE_NUMBER,
    configInForce: { enum: ['current', 'previous', 'none'] },
    configReloads: COUNT,
    configNeedsRestart: STRINGS,
    tools: COUNT,
    advice: { type: 'string', description: 'What a person can do about Trunkline as a whole' },
    limits: object({ waitingCalls: LIMIT_SCHEMA, partialFrameBytes: LIMIT_SCHEMA }),
    internalErrorCount: { ...COUNT, description: 'Internal errors in Trunkline, each of which failed one request' },
    servers: { type: 'array', items: SERVER_SCHEMA },
  }),
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
};

/** Makes an object schema in which every member is required. */
function object(properties: Record<string, object>) {
  return { type: 'object' as const, properties, required: Object.keys(properties) };
}
