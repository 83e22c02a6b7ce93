import type { DownstreamClient } from '../../downstream/port.js';
import {
  LIMITED_CLIENTS,
  type LimitedClient,
  type ListDecision,
  type ListMode,
  MAX_LIST_TOKENS,
} from '../../spec/list-modes.js';
import { editMembers } from '../../wire/json/edit-members.js';
import { isObject, isString, readString, type Span, stringAt, toBytes, valuesAt } from '../../wire/json/json-text.js';
import { asText, isRecord, parseJson } from '../../wire/json/json-value.js';
import { type Edit, splice } from '../../wire/json/splice.js';
import { tokensOfList } from '../../wire/mcp/entry-check.js';
import { scanOwn } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import { EnvelopeRequest, type RelayedRequest } from '../../wire/mcp/relayed-request.js';
import type { Catalog } from '../catalog/catalog.js';
import { createToolPolicy } from '../catalog/tool-policy.js';
import { createOwnTool, type OwnTool, textResult } from '../routing/own-tool.js';

/*
 * Search mode: the choice of the clients that get tools for searching in place of most others, these tools, and calls through them.
 */

interface Session {
  readonly mode: ListMode;
  readonly limited: LimitedClient | undefined;
  decision?: ListDecision;
}

/** Forms of the tool list for all clients. Each is decided when it is first needed, and then holds for the session. */
export class ListModes {
  readonly #sessions = new WeakMap<DownstreamClient, Session>();

  /** Call this when a session opens. `name` is `clientInfo.name`, unchecked. */
  open(client: DownstreamClient, mode: ListMode, name: unknown): void {
    const { mode: own, limited } = rulesFor(mode, name);
    if (own !== 'direct') this.#sessions.set(client, { mode: own, limited });
  }

  /**
   * Whether the client may use the tools of the search. This is also true for a client whose list is short enough at present,
   * because a client without a session may have read a longer list before.
   */
  maySearch(client: DownstreamClient): boolean {
    return this.#sessions.has(client);
  }

  /** Whether the client is in search mode. With `auto`, false as long as that is not decided. */
  isSearching(client: DownstreamClient): boolean {
    const session = this.#sessions.get(client);
    return session !== undefined && (session.decision?.mode ?? session.mode) === 'search';
  }

  /** Returns the form of the tool list for the client. Decides it by `tools` at the first call. */
  of(client: DownstreamClient, tools: () => Catalog): ListDecision {
    const session = this.#sessions.get(client);
    if (session === undefined) return DIRECT;
    session.decision ??= decide(session, tools());
    return session.decision;
  }
}

/** Whether a client of this name may get a list that does not have all tools. */
export function mayGetSearch(mode: ListMode, name: unknown): boolean {
  return rulesFor(mode, name).mode !== 'direct';
}

function rulesFor(mode: ListMode, name: unknown): Session {
  if (mode === 'direct') return { mode, limited: undefined };
  const limited = LIMITED_CLIENTS.find(({ names }) => createToolPolicy({ allow: names, deny: [] })(asText(name)));
  return mode === 'auto' && limited === undefined ? { mode: 'direct', limited } : { mode, limited };
}

const DIRECT: ListDecision = { mode: 'direct', because: '' };

function decide({ mode, limited }: Session, { entries }: Catalog): ListDecision {
  if (mode === 'search' || limited === undefined) return { mode: 'search', because: 'the configuration says so' };
  const tokens = tokensOfList(entries);
  const { title, tools } = limited;
  if (entries.length > tools)
    return { mode: 'search', because: `${title} shows ${tools} tools, and there are ${entries.length}` };
  if (tokens > MAX_LIST_TOKENS) return { mode: 'search', because: `the list of all tools has about ${tokens} tokens` };
  return { mode: 'direct', because: `${title} shows ${tools} tools, and there are only ${entries.length}` };
}

/** The tool that calls another one. */
const CALL_TOOL = 'trunkline__call_tool';

/** Number of tools in one answer of the search, and of those among them whose definitions are part of it. */
export const FOUND = { most: 50, usual: 8, defined: 3 };

/** Clients send these entries with each conversation, so they are short. */
const FIND_TOOLS = {
  name: 'trunkline__find_tools',
  title: 'Find tools',
  description:
    'Searches the tools that are not in the list. Say in a few words what has to be done. Best match first. With only a server, lists its tools.',
  inputSchema: {
    type: 'object' as const,
    properties: {
      query: { type: 'string', description: 'What has to be done, or the name of a tool' },
      server: { type: 'string', description: 'Key of the only server to search' },
      limit: { type: 'integer', minimum: 1, maximum: FOUND.most, description: `Default: ${FOUND.usual}` },
    },
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true, openWorldHint: false },
};

const DESCRIBE_TOOLS = {
  name: 'trunkline__describe_tools',
  title: 'Describe tools',
  description: 'Returns the exact definitions of tools, with all parameters.',
  inputSchema: {
    type: 'object' as const,
    properties: {
      names: { type: 'array', items: { type: 'string' }, description: 'Names that trunkline__find_tools returned' },
    },
    required: ['names'],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true, openWorldHint: false },
};

const CALL_A_TOOL = {
  name: CALL_TOOL,
  title: 'Call a tool',
  description: 'Calls a tool that is not in the list, and returns its result unchanged.',
  inputSchema: {
    type: 'object' as const,
    properties: {
      name: { type: 'string', description: 'Name that trunkline__find_tools returned' },
      arguments: { type: 'object', description: 'Arguments of that tool, as its own inputSchema says' },
    },
    required: ['name'],
    additionalProperties: false,
  },
  // The tool that is called may run as a task.
  execution: { taskSupport: 'optional' as const },
};

/** Makes the tools with which clients in search mode reach the tools that they do not see. */
export function createSearchTools(): readonly OwnTool[] {
  return [
    createOwnTool(FIND_TOOLS, async (args, visible) => {
      const { findTools } = await import('./find-tools.js');
      return findTools(args, visible, FOUND);
    }),
    createOwnTool(DESCRIBE_TOOLS, async (args, visible) => {
      const { describeTools } = await import('./find-tools.js');
      return describeTools(args, visible);
    }),
    // `unwrapCall` replaces every call that names a tool, so only the others come here.
    createOwnTool(CALL_A_TOOL, () =>
      textResult(
        `${CALL_TOOL} needs \`name\`, the name of another tool, and \`arguments\`, an object. trunkline__find_tools finds names.`,
        true,
      ),
    ),
  ];
}

/**
 * Turns a call through `trunkline__call_tool` into a call of the tool that it names. Everything but the name and the arguments
 * keeps its bytes, such as `_meta` and a task. Returns `undefined` for any other request, and for one that names no tool.
 */
export function unwrapCall(request: RelayedRequest): RelayedRequest | undefined {
  const { bytes, params, tokens, method } = request;
  if (method !== METHODS.callTool || params === undefined || tokens.name === undefined) return undefined;
  if (stringAt(bytes, tokens.name) !== CALL_TOOL) return undefined;
  const given = objectAt(bytes, params, 'arguments');
  const [name, ...otherNames] = given === undefined ? [] : valuesAt(bytes, given, ['name']);
  if (given === undefined || name === undefined || otherNames.length > 0 || !isString(bytes, name)) return undefined;
  if (readString(bytes, name) === CALL_TOOL) return undefined;
  const [args, ...otherArguments] = valuesAt(bytes, given, ['arguments']);
  if (otherArguments.length > 0) return undefined;
  const edits: Edit[] = [{ span: tokens.name, text: bytes, part: name }];
  if (args === undefined) edits.push(...editMembers(bytes, params, { removes: (member) => member === 'arguments' }));
  else edits.push({ span: given, ...argumentsText(bytes, args) });
  const unwrapped = scanOwn(splice(request.message(ID, edits)));
  return unwrapped.kind === 'request' ? new EnvelopeRequest(unwrapped) : undefined;
}

/** Id of the unwrapped request. It is replaced before the request is sent to a server. */
const ID = { text: toBytes('0'), part: { start: 0, end: 1 } };

/** The only member of this name, if it is an object. */
function objectAt(bytes: Uint8Array, parent: Span, name: string): Span | undefined {
  const [value, ...others] = valuesAt(bytes, parent, [name]);
  return value !== undefined && others.length === 0 && isObject(bytes, value) ? value : undefined;
}

/** Some models write the arguments as a string that contains the JSON. */
function argumentsText(bytes: Uint8Array, args: Span): { readonly text: Uint8Array; readonly part?: Span } {
  const text = stringAt(bytes, args);
  return text !== undefined && isRecord(parseJson(text)) ? { text: toBytes(text) } : { text: bytes, part: args };
}
