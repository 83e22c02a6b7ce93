import { LISTS, requestedList } from './lists.js';

/** The methods that the gateway knows by name. Those of lists are in `lists.ts`. */
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

/** Whether a revision with a handshake defines the request. `server/discover` of later revisions is not one of them. */
export function isLegacyRequest(method: string): boolean {
  return LEGACY_REQUESTS.has(method);
}

/** The requests that came with the revisions without a handshake. */
const MODERN_REQUESTS: ReadonlySet<string> = new Set([METHODS.discover, METHODS.listen, METHODS.updateTask]);

const LEGACY_REQUESTS: ReadonlySet<string> = new Set([
  ...Object.values(METHODS).filter((method) => !method.startsWith('notifications/') && !MODERN_REQUESTS.has(method)),
  ...Object.values(LISTS).map(({ method }) => method),
]);

/** Whether some revision defines the notification. */
export function isDefinedNotification(method: string): boolean {
  return DEFINED_NOTIFICATIONS.has(method);
}

const DEFINED_NOTIFICATIONS: ReadonlySet<string> = new Set([
  ...Object.values(METHODS),
  ...Object.values(LISTS).map(({ changed }) => changed),
]);

/** Requests that MCP defines as free of side effects, so that they may be repeated. */
export function isRepeatable(method: string): boolean {
  return REPEATABLE_METHODS.has(method) || requestedList(method) !== undefined;
}

const REPEATABLE_METHODS: ReadonlySet<string> = new Set([METHODS.readResource, METHODS.getPrompt, METHODS.complete]);

/** Requests about one task, whose id they name. */
export const TASK_METHODS: ReadonlySet<string> = new Set([
  METHODS.getTask,
  METHODS.taskResult,
  METHODS.cancelTask,
  METHODS.updateTask,
]);

/** Whether earlier revisions define the request, and those without a handshake do not. */
export function isRemovedRequest(method: string): boolean {
  return REMOVED_REQUESTS.has(method);
}

const REMOVED_REQUESTS: ReadonlySet<string> = new Set([
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
