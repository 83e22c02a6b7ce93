import { toBytes } from '../../json/json-text.js';
import type { RequestEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import { MODERN_REVISIONS } from '../../mcp/revisions.js';
import { declaredCapabilities, type ServerInfo } from '../declared-capabilities.js';
import type { GatewayPort } from '../port.js';
import type { TransportSession } from '../transport.js';
import { ModernForm } from './modern-form.js';
import { readProfile } from './request-facts.js';

/**
 * The result of `server/discover`, as JSON: what the servers are, as far as it is known. Starts no server and opens no
 * session. See the page server/discover of revision 2026-07-28.
 */
export function discover(
  request: RequestEnvelope,
  { server, view, origin }: TransportSession,
  { gateway, serverInfo }: { readonly gateway: GatewayPort; readonly serverInfo: ServerInfo },
): Uint8Array {
  const profile = readProfile(request);
  const { offered, instructions } = gateway.describe({ profile, server, view, origin });
  const result = {
    supportedVersions: MODERN_REVISIONS,
    capabilities: declaredCapabilities(MODERN_REVISIONS[0], offered),
    ...(instructions !== '' && { instructions }),
  };
  return new ModernForm({ serverInfo }).result(toBytes(JSON.stringify(result)), METHODS.discover);
}
