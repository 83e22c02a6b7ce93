import { createHash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { SessionRecords, SessionState } from '../../downstream/http/session-records.js';
import { type Keys, openBytes, sealBytes } from '../../host/sealed-bytes.js';
import { type ClusterStore, ignoreAbsence } from './store.js';

interface StoredSessionsOptions {
  readonly store: ClusterStore;
  /** The keys for records, which all gateways share. */
  readonly keys: Keys;
  readonly limits: { readonly sessionIdleMs: number; readonly maxSessionAgeMs: number };
}

/** Time for which a record is stored, as a multiple of the time after which an idle session ends. */
const IDLE_TIMES = 1.1;
/** Largest record, in bytes. Beyond it, the subscriptions that were made first are left out. */
const MAX_RECORD_BYTES = 1_024;

/**
 * The states of sessions in the store of the cluster, encrypted, so that the store learns nothing of users. A session that was
 * deleted has a record of its own, which a gateway that still has the session cannot overwrite.
 */
export class StoredSessions implements SessionRecords {
  readonly #options: StoredSessionsOptions;

  constructor(options: StoredSessionsOptions) {
    this.#options = options;
  }

  async read(id: string): Promise<SessionState | 'deleted' | undefined> {
    const { store, keys } = this.#options;
    const [name, end] = namesOf(id);
    const found = await Promise.all([store.read(name), store.read(end)]).catch(ignoreAbsence);
    if (found?.[1] !== undefined) return 'deleted';
    const opened = found?.[0] && openBytes(keys, found[0], Buffer.from(name));
    return opened && (JSON.parse(inflateRawSync(opened).toString()) as SessionState);
  }

  write(id: string, { level, uris }: SessionState): void {
    const { store, limits } = this.#options;
    const [name] = namesOf(id);
    let left = uris;
    let sealed = this.#seal(name, { level, uris: left });
    while (sealed.length > MAX_RECORD_BYTES) {
      left = left.slice(Math.ceil(left.length / 8));
      sealed = this.#seal(name, { level, uris: left });
    }
    void store.write(name, sealed, Math.ceil(limits.sessionIdleMs * IDLE_TIMES)).catch(ignoreAbsence);
  }

  async delete(id: string): Promise<void> {
    const { store, limits } = this.#options;
    const [, end] = namesOf(id);
    await store.write(end, new Uint8Array(), limits.maxSessionAgeMs).catch(ignoreAbsence);
  }

  #seal(name: string, state: SessionState): Uint8Array {
    return sealBytes(this.#options.keys, deflateRawSync(JSON.stringify(state)), Buffer.from(name));
  }
}

/** The names of the record of a session, and of the record of its end. An id opens its session, so the names have its hash. */
function namesOf(id: string): readonly [state: string, end: string] {
  const hash = createHash('sha256').update(id).digest('base64url');
  return [`s:${hash}`, `e:${hash}`];
}
