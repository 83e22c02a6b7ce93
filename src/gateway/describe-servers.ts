import type { GatewayDescription } from '../downstream/port.js';
import type { GatewaySettings } from './gateway-options.js';
import { composeInstructions } from './instructions.js';
import type { NamedView } from './named-views.js';
import type { Backend } from './registry/backend.js';
import { instructingServer } from './server-handshake.js';

/** What a client learns about servers before it uses them, from what the servers say of themselves. */
export function describeServers(
  backends: readonly Backend[],
  handshakeOf: (backend: Backend) => Backend['handshake'],
  named: NamedView | undefined,
  { notice, maxInstructionsBytes: maxBytes }: GatewaySettings,
): GatewayDescription {
  return {
    offered: backends.map((backend) => handshakeOf(backend)?.capabilities ?? {}),
    get instructions() {
      const servers = backends.flatMap((backend) => instructingServer(backend, handshakeOf(backend), named));
      return composeInstructions({ notice: notice ?? named?.fault, servers, maxBytes });
    },
  };
}
