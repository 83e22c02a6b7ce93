/*
 * Names of the semantic conventions for MCP, which are in development and may still change, and names of Trunkline's own. The
 * conventions are in docs/gen-ai/mcp.md of open-telemetry/semantic-conventions-genai.
 */

/** Attributes of spans. `docs/metrics.md` says which span has which. */
export const ATTRIBUTES = {
  method: 'mcp.method.name',
  revision: 'mcp.protocol.version',
  resource: 'mcp.resource.uri',
  requestId: 'jsonrpc.request.id',
  tool: 'gen_ai.tool.name',
  prompt: 'gen_ai.prompt.name',
  operation: 'gen_ai.operation.name',
  arguments: 'gen_ai.tool.call.arguments',
  result: 'gen_ai.tool.call.result',
  errorType: 'error.type',
  errorCode: 'rpc.response.status_code',
  transport: 'network.transport',
  protocol: 'network.protocol.name',
  clientAddress: 'client.address',
  clientPort: 'client.port',
  serverAddress: 'server.address',
  serverPort: 'server.port',
  client: 'trunkline.client.name',
  server: 'trunkline.server.key',
  generation: 'trunkline.generation',
  attempt: 'trunkline.attempt',
  outcome: 'trunkline.outcome',
  wait: 'trunkline.queue.wait_ms',
  eraOfClient: 'trunkline.era.front',
  eraOfServer: 'trunkline.era.child',
} as const;

/** Value of `gen_ai.operation.name` for tool calls. */
export const EXECUTE_TOOL = 'execute_tool';
/** Values of `network.transport`. */
export const PIPE = 'pipe';
export const TCP = 'tcp';
/** Values of `error.type` besides JSON-RPC codes and the reasons of failures. */
export const TOOL_ERROR = 'tool_error';
export const CANCELLED = 'cancelled';

/**
 * JSON-RPC codes that are faults of the request, and therefore no errors of the side that answers. On the side that has sent
 * the request, every code is an error.
 */
export const FAULTS_OF_REQUEST: ReadonlySet<number> = new Set([-32700, -32600, -32601, -32602, -32002]);
