import { ClientPipe } from '../downstream/stdio/stdio-transport.js';
import { IDENTITY } from '../version.js';
import { splice } from '../wire/json/splice.js';
import type { GatewayProcess } from './gateway-process.js';
import { createEraChooser, LOCAL_USER } from './platform.js';

export interface ClientConnection {
  /** Takes one message, without a newline. */
  send(message: Uint8Array): void;
  close(): void;
}

/**
 * Opens a session for a client in the process of the gateway, without a pipe. `receive` takes each message for the client. The
 * client has the view of this name, or sees everything; with `server`, it sees this one server unchanged.
 */
export function openPipe(
  { platform, gateway }: GatewayProcess,
  receive: (message: Uint8Array) => void,
  view?: string,
  server?: string,
): ClientConnection {
  const session = new ClientPipe({
    scan: platform.scan,
    messages: platform.messages,
    principal: LOCAL_USER,
    view,
    server,
    chooseEra: createEraChooser(platform, gateway, IDENTITY),
    sink: {
      send: (message) => {
        receive(splice(message));
        message.lease?.release();
      },
      unwrittenBytes: 0,
    },
    onInternalError: platform.internalErrors.onInternalError,
  });
  return { send: (message) => session.receive(message), close: () => session.close() };
}
