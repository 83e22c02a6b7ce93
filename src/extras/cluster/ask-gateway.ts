import { type Address, addressText } from '../../config/schema/cluster-address.js';
import { errorCode, errorMessage } from '../../host/errors/error-text.js';
import type { Keys } from '../../host/sealed-bytes.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { readSigned, UnexpectedStatus } from './hop.js';
import type { ClusterView } from './members.js';
import { ANY_RECEIVER, MEMBERS_PATH, RequestSigner } from './signed-request.js';

/** The answer of the gateway on this machine, or the reason why there is none. */
export type Asked =
  | { readonly kind: 'answered'; readonly view: ClusterView }
  /** No process listens at the address. */
  | { readonly kind: 'absent'; readonly address: string }
  /** The gateway has another key than this command. */
  | { readonly kind: 'other-key'; readonly address: string }
  | { readonly kind: 'silent'; readonly address: string; readonly because: string };

interface AskOptions {
  /** Host and port at which the gateway listens for other gateways. */
  readonly listen: Address;
  readonly keys: Keys;
}

const TIMEOUT_MS = 3_000;

/** Asks the gateway on this machine about its cluster. The store is not asked. */
export async function askGateway({ listen: { host, port }, keys }: AskOptions): Promise<Asked> {
  const address = addressText({ host: host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host, port });
  const signer = new RequestSigner(keys, 'command');
  try {
    const text = await readSigned({ signer, to: ANY_RECEIVER, address, path: MEMBERS_PATH, timeoutMs: TIMEOUT_MS });
    const view = parseJson(text);
    if (isRecord(view) && Array.isArray(view.members))
      return { kind: 'answered', view: view as unknown as ClusterView };
    return { kind: 'silent', address, because: 'its answer is not that of a gateway' };
  } catch (error) {
    if (error instanceof UnexpectedStatus && error.status === 401) return { kind: 'other-key', address };
    if (errorCode(error) === 'ECONNREFUSED') return { kind: 'absent', address };
    return { kind: 'silent', address, because: errorMessage(error) };
  }
}
