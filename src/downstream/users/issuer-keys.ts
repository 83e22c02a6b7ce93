import { type CryptoKey, createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import type { Clock } from '../../wire/timing/clock.js';
import { type FetchDocument, IssuerDocument, type IssuerMetadata, readJson } from './issuer-document.js';

interface IssuerKeysOptions {
  /** The URL of the keys. Absent if the metadata of the issuer names it. */
  readonly jwksUri?: string | undefined;
  readonly metadata: IssuerDocument<IssuerMetadata>;
  readonly clock: Clock;
  readonly fetch: FetchDocument;
  /** As in `IssuerDocument`. */
  readonly onFault: (fault: string | undefined, areKnown: boolean) => void;
}

/** Thrown while no keys are known, because the issuer was never reachable. */
export class KeysMissing extends Error {
  override readonly name = 'KeysMissing';
}

export class IssuerKeys {
  readonly #keys: IssuerDocument<ReturnType<typeof createLocalJWKSet>>;

  constructor({ jwksUri, metadata, clock, fetch, onFault }: IssuerKeysOptions) {
    const read = async () => {
      const set = await readJson(jwksUri ?? (await urlOfKeys(metadata)), fetch);
      return createLocalJWKSet(set as unknown as JSONWebKeySet);
    };
    this.#keys = new IssuerDocument({ clock, read, onFault });
  }

  /** Finds the key of a signature. Throws `KeysMissing`, or an error of `jose` if the issuer has no such key. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const before = this.#keys.readAt;
    await this.#keys.current();
    try {
      return await this.#find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || this.#keys.readAt !== before) throw error;
      await this.refresh();
      return await this.#find(header, token);
    }
  };

  /** Reads the keys, unless that was tried lately. Never rejects. */
  refresh(): Promise<void> {
    return this.#keys.refresh();
  }

  #find(...signature: Parameters<JWTVerifyGetKey>): Promise<CryptoKey> {
    const { known } = this.#keys;
    if (known === undefined) throw new KeysMissing();
    return known(...signature) as Promise<CryptoKey>;
  }
}

async function urlOfKeys(metadata: IssuerDocument<IssuerMetadata>): Promise<string> {
  await metadata.refresh();
  if (metadata.fault !== undefined) throw new Error(metadata.fault);
  const { issuer, jwks_uri: url } = metadata.known ?? {};
  if (typeof url !== 'string') throw new Error(`the metadata of ${issuer} names no \`jwks_uri\``);
  return url;
}
