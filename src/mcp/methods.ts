/** The methods that the gateway treats by name; every other one is somebody else's and goes through untouched. */
export const METHODS = {
  initialize: 'initialize',
  initialized: 'notifications/initialized',
  ping: 'ping',
  cancelled: 'notifications/cancelled',
  progress: 'notifications/progress',
  listTools: 'tools/list',
  callTool: 'tools/call',
  toolsChanged: 'notifications/tools/list_changed',
} as const;
