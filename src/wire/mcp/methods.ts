import { foldKey } from '../json/json-text.js';

/** Methods that the gateway knows by name. Those of lists are in `LISTS`. */
export const METHODS = {
  initialize: 'initialize',
  initialized: 'notifications/initialized',
  ping: 'ping',
  cancelled: 'notifications/cancelled',
  progress: 'notifications/progress',
  callTool: 'tools/call',
  getPrompt: 'prompts/get',
  readResource: 'resources/read',
  subscribe: 'resources/subscribe',
  unsubscribe: 'resources/unsubscribe',
  resourceUpdated: 'notifications/resources/updated',
  complete: 'completion/complete',
  setLevel: 'logging/setLevel',
  message: 'notifications/message',
  createMessage: 'sampling/createMessage',
  elicit: 'elicitation/create',
  elicitationComplete: 'notifications/elicitation/complete',
  getTask: 'tasks/get',
  taskResult: 'tasks/result',
  cancelTask: 'tasks/cancel',
  listTasks: 'tasks/list',
  taskStatus: 'notifications/tasks/status',
  taskState: 'notifications/tasks',
  listRoots: 'roots/list',
  rootsChanged: 'notifications/roots/list_changed',
  discover: 'server/discover',
  listen: 'subscriptions/listen',
  acknowledged: 'notifications/subscriptions/acknowledged',
  updateTask: 'tasks/update',
} as const;

/** The lists that servers offer and the gateway merges. */
export const LIST_KINDS = ['tools', 'prompts', 'resources', 'templates'] as const;

export type ListKind = (typeof LIST_KINDS)[number];

/** The names of one kind of list in the protocol. */
export interface ListFacts {
  readonly method: string;
  readonly member: string;
  readonly token: 'resultTools' | 'resultPrompts' | 'resultResources' | 'resultTemplates';
  readonly capability: 'tools' | 'prompts' | 'resources';
  readonly changed: string;
}

export const LISTS: Readonly<Record<ListKind, ListFacts>> = {
  tools: list('tools', 'tools', 'resultTools'),
  prompts: list('prompts', 'prompts', 'resultPrompts'),
  resources: list('resources', 'resources', 'resultResources'),
  templates: list('resources', 'resourceTemplates', 'resultTemplates', 'resources/templates/list'),
};

function list(
  capability: ListFacts['capability'],
  member: string,
  token: ListFacts['token'],
  method = `${capability}/list`,
): ListFacts {
  return { method, member, token, capability, changed: `notifications/${capability}/list_changed` };
}

/** Whether names identify the entries and get the server's prefix. The other kinds have URIs, without a prefix. */
export function isNamed(kind: ListKind): boolean {
  return kind === 'tools' || kind === 'prompts';
}

/** Returns the list that a method requests, if any. */
export function requestedList(method: string): ListKind | undefined {
  return KINDS_BY_METHOD.get(method);
}

const KINDS_BY_METHOD: ReadonlyMap<string, ListKind> = new Map(LIST_KINDS.map((kind) => [LISTS[kind].method, kind]));

export function listsChangedBy(method: string): readonly ListKind[] {
  return LIST_KINDS.filter((kind) => LISTS[kind].changed === method);
}

/** Requests that only the revisions without a handshake define. */
const MODERN_REQUESTS: ReadonlySet<string> = new Set([METHODS.discover, METHODS.listen, METHODS.updateTask]);

/** Requests that a revision with a handshake defines, without `server/discover`. */
export const LEGACY_REQUESTS: ReadonlySet<string> = new Set([
  ...Object.values(METHODS).filter((method) => !method.startsWith('notifications/') && !MODERN_REQUESTS.has(method)),
  ...Object.values(LISTS).map(({ method }) => method),
]);

/** Whether MCP defines the method, as a notification or as a request. */
export function isDefinedNotification(method: string): boolean {
  return DEFINED_NOTIFICATIONS.has(method);
}

const DEFINED_NOTIFICATIONS: ReadonlySet<string> = new Set([
  ...Object.values(METHODS),
  ...Object.values(LISTS).map(({ changed }) => changed),
]);

/**
 * Whether servers may get a message of a client with this method. They may not if a server could take the method for one of MCP,
 * because the gateway has not checked and translated it as such. Examples are another spelling, and a request that is sent as a
 * notification. Methods with `$/` are refused, too, because libraries of JSON-RPC handle some of them themselves.
 */
export function mayReachServers(method: string, kind: 'request' | 'notification'): boolean {
  const meant = DEFINED.get(foldMethod(method));
  if (meant === undefined) return !method.includes('$/');
  return meant === method && method.startsWith('notifications/') === (kind === 'notification');
}

/** Returns the letters and digits in one case, because some servers turn `tools/call` into `tools_call` to find a function. */
function foldMethod(method: string): string {
  return foldKey(method).replace(/[^\p{L}\p{N}]/gu, '');
}

const DEFINED: ReadonlyMap<string, string> = new Map(
  [...LEGACY_REQUESTS, ...MODERN_REQUESTS, ...DEFINED_NOTIFICATIONS].map((method) => [foldMethod(method), method]),
);

/** Whether MCP defines the request as free of side effects, so that it may be repeated. */
export function isRepeatable(method: string): boolean {
  return REPEATABLE_METHODS.has(method) || requestedList(method) !== undefined;
}

const REPEATABLE_METHODS: ReadonlySet<string> = new Set([METHODS.readResource, METHODS.getPrompt, METHODS.complete]);

/** Requests about one task, whose id is in the params. */
export const TASK_METHODS: ReadonlySet<string> = new Set([
  METHODS.getTask,
  METHODS.taskResult,
  METHODS.cancelTask,
  METHODS.updateTask,
]);

/** Requests that earlier revisions define, and revisions without a handshake do not. */
export const REMOVED_REQUESTS: ReadonlySet<string> = new Set([
  METHODS.initialize,
  METHODS.ping,
  METHODS.subscribe,
  METHODS.unsubscribe,
  METHODS.setLevel,
  METHODS.listTasks,
  METHODS.taskResult,
  METHODS.createMessage,
  METHODS.elicit,
  METHODS.listRoots,
]);

/** The levels of log messages, from the least severe to the most severe. */
const LOG_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/** Level at which a server sends every message. */
export const MOST_VERBOSE: LogLevel = 'debug';

export function isLogLevel(text: string): text is LogLevel {
  return (LOG_LEVELS as readonly string[]).includes(text);
}

/** Whether `level` is at least as severe as `least`. True for an unknown level. */
export function isAtLeast(level: string, least: LogLevel): boolean {
  return !isLogLevel(level) || LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(least);
}

/** Returns the least severe of the levels; `undefined` if there are none. */
export function mostTalkative(levels: Iterable<LogLevel>): LogLevel | undefined {
  const wanted = new Set(levels);
  return LOG_LEVELS.find((level) => wanted.has(level));
}

/** The requests for input that a result may carry. */
export const INPUT_METHODS: ReadonlySet<string> = new Set([METHODS.createMessage, METHODS.elicit, METHODS.listRoots]);
