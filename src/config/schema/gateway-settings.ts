import * as z from 'zod/mini';
import { bytes, count, described, duration, expects, flag, oneOf, text } from './fields.js';
import { httpSection } from './http-settings.js';
import { GATEWAY_SETTINGS, START_LIMIT } from './settings.js';

const gatewaySettings = z.strictObject(
  {
    startupWait: duration(
      GATEWAY_SETTINGS.startupWait,
      'How long the first list request, or a request for something that no server lists yet, waits for servers that are starting.',
    ),
    idleStop: duration(
      GATEWAY_SETTINGS.idleStop,
      'How long a process without clients keeps running for the next client.',
    ),
    restartTool: flag(GATEWAY_SETTINGS.restartTool, 'Offers the tool trunkline__restart, which restarts a server.'),
    watch: flag(GATEWAY_SETTINGS.watch, 'Applies changes of this file while Trunkline runs.'),
    startLimit: count(
      START_LIMIT,
      'Servers that may be starting at once. Default: the number of CPU cores, but at least 4.',
    ),
    maxQueued: count(
      GATEWAY_SETTINGS.maxQueued,
      'Calls that may wait in the queues of all servers together. Further calls are refused at once.',
    ),
    maxPartial: bytes(
      GATEWAY_SETTINGS.maxPartial,
      'Limit on unfinished incoming messages, for all servers and the client on stdin together. When it is reached, the largest of them is dropped.',
    ),
    maxInstructions: bytes(
      GATEWAY_SETTINGS.maxInstructions,
      'Limit on the instructions that a client gets: a line about each server, and the instructions of the servers, of which the longest are cut. 0B leaves out everything that servers say.',
    ),
    hub: oneOf(
      GATEWAY_SETTINGS.hub,
      'Whether all clients on stdin share one background process with one set of servers (auto), or each starts its own (off).',
    ),
    hubIdle: duration(
      GATEWAY_SETTINGS.hubIdle,
      'How long the shared background process waits for the next client before it ends. 0s means forever.',
    ),
    hubClients: count(
      GATEWAY_SETTINGS.hubClients,
      'Clients that the shared background process takes. Further clients start their own servers.',
    ),
    callLog: oneOf(
      GATEWAY_SETTINGS.callLog,
      'Writes a line about each call to calls.jsonl in the data folder: without (metadata) or with (full) its arguments and its result. `trunkline activity` shows it.',
    ),
    record: text(
      'Records all messages to this file, without the known secrets. Relative to the folder of this file.',
      'the path of a file',
    ),
    sealKeyFile: text(
      'A file with the key of several gateways that serve the same clients: each accepts the task ids and the cursors of the others. Only its owner may have access. Relative to the folder of this file.',
      'the path of a file',
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
