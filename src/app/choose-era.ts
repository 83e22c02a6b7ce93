import { legacyEra } from '../downstream/legacy/legacy-session.js';
import type { GatewayPort } from '../downstream/port.js';
import type { ChooseEra } from '../downstream/transport.js';
import type { Platform } from './platform.js';

/** Connects the protocol eras to the gateway. All messages belong to the revisions with a handshake for now. */
export function createEraChooser(
  platform: Platform,
  gateway: GatewayPort,
  serverInfo: { readonly name: string; readonly title?: string; readonly version: string },
): ChooseEra {
  const { clock, scan, internalErrors } = platform;
  const legacy = legacyEra({ clock, scan, onInternalError: internalErrors.onInternalError, gateway, serverInfo });
  return () => legacy;
}
