import { legacyEra } from '../downstream/legacy/legacy-session.js';
import { modernEra } from '../downstream/modern/modern-session.js';
import type { GatewayPort } from '../downstream/port.js';
import type { ChooseEra, Era } from '../downstream/transport.js';
import type { Platform } from './platform.js';

/** Connects the protocol eras to the gateway. */
export function createEraChooser(
  platform: Platform,
  gateway: GatewayPort,
  serverInfo: { readonly name: string; readonly title?: string; readonly version: string },
): ChooseEra {
  const { clock, scan, internalErrors } = platform;
  const { onInternalError } = internalErrors;
  const legacy = legacyEra({ clock, scan, onInternalError, gateway, serverInfo });
  const modern = modernEra({ clock, scan, onInternalError, gateway, serverInfo });
  return eraChooser({ legacy, modern });
}

/**
 * A request belongs to the revisions without a handshake if it names its revision in `_meta`. A notification need not, and
 * belongs to the era that the client uses.
 */
export function eraChooser({ legacy, modern }: { readonly legacy: Era; readonly modern: Era }): ChooseEra {
  return (message, isUsed) => {
    if (message.kind === 'rejected' || message.kind === 'response') return legacy;
    if (message.tokens.eraVersion !== undefined) return modern;
    return message.kind === 'notification' && !isUsed(legacy) && isUsed(modern) ? modern : legacy;
  };
}
