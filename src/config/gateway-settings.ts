import * as z from 'zod/mini';
import { HUB_MODES } from './config.js';
import { GATEWAY_DEFAULTS } from './defaults.js';
import { bytes, count, described, duration, expects, flag, oneOf } from './fields.js';
import { httpSection } from './http-settings.js';

const gatewaySettings = z.strictObject(
  {
    startupWait: duration(
      GATEWAY_DEFAULTS.startupWait,
      'How long the first list request, or a request for something that no server lists yet, waits for servers that are starting.',
      { min: '0s', max: '300s' },
    ),
    idleStop: duration(
      GATEWAY_DEFAULTS.idleStop,
      'How long a process without clients keeps running for the next client.',
      { min: '0s', max: '24h' },
    ),
    restartTool: flag(GATEWAY_DEFAULTS.restartTool, 'Offers the tool trunkline__restart, which restarts a server.'),
    watch: flag(GATEWAY_DEFAULTS.watch, 'Applies changes of this file while Trunkline runs.'),
    startLimit: count(
      undefined,
      'Servers that may be starting at once. Default: the number of CPU cores, but at least 4.',
      {
        min: 1,
        max: 1024,
      },
    ),
    maxQueued: count(
      GATEWAY_DEFAULTS.maxQueued,
      'Calls that may wait in the queues of all servers together. Further calls are refused at once.',
      {
        min: 0,
        max: 65536,
      },
    ),
    maxPartial: bytes(
      GATEWAY_DEFAULTS.maxPartial,
      'Limit on unfinished incoming messages, for all servers and the client on stdin together. When it is reached, the largest of them is dropped.',
      { min: '1MiB', max: '16GiB' },
    ),
    lineTimeout: duration(
      GATEWAY_DEFAULTS.lineTimeout,
      'Drops an unfinished message of a server, or of the client on stdin, when no byte of it came for so long.',
      { min: '1s', max: '1h' },
    ),
    maxInstructions: bytes(
      GATEWAY_DEFAULTS.maxInstructions,
      'Limit on the instructions that a client gets: a line about each server, and the instructions of the servers, of which the longest are cut. 0B leaves out everything that servers say.',
      { min: '0B', max: '64KiB' },
    ),
    hub: oneOf(
      HUB_MODES,
      GATEWAY_DEFAULTS.hub,
      'Whether all clients on stdin share one background process with one set of servers (auto), or each starts its own (off).',
    ),
    hubIdle: duration(
      GATEWAY_DEFAULTS.hubIdle,
      'How long the shared background process waits for the next client before it ends. 0s means forever.',
      { min: '0s', max: '24h' },
    ),
    hubClients: count(
      GATEWAY_DEFAULTS.hubClients,
      'Clients that the shared background process takes. Further clients start their own servers.',
      { min: 1, max: 4096 },
    ),
    http: described(
      httpSection,
      'Limits of the HTTP server, for `serve --http`. Keys that you leave out keep their defaults.',
    ),
  },
  expects('a map of settings'),
);

/** `gateway` of the file. */
export const gatewaySection = z.exactPartial(gatewaySettings);

/** Built-in settings of the gateway, parsed by the same rules as the file. */
export const GATEWAY_BUILT_IN = z.omit(gatewaySettings, { startLimit: true, http: true }).parse(GATEWAY_DEFAULTS);
