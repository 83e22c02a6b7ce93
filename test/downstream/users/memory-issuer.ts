import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { IssuerDocument, readMetadata } from '../../../src/downstream/users/issuer-document.js';
import { IssuerKeys } from '../../../src/downstream/users/issuer-keys.js';
import { FakeClock } from '../../support/fake-clock.js';

type Claims = Readonly<Record<string, unknown>>;

/** Time at which the tokens of the tests are made and checked: milliseconds since 1970. */
export const NOW = Date.parse('2026-11-28T12:00:00Z');
const NOW_S = NOW / 1_000;
export const AUDIENCE = 'https://mcp.example.com/mcp';

/** An identity provider in memory: its metadata, its keys and its tokens. */
export class MemoryIssuer {
  readonly issuer: string;
  /** The URLs that were asked for. */
  readonly asked: string[] = [];
  isDown = false;
  /** Answers come after this. */
  hold: Promise<void> | undefined;
  /** The documents, by URL. */
  readonly documents = new Map<string, unknown>();
  readonly #withdrawn = new Set<string>();
  readonly #keys = new Map<string, { readonly jwk: JWK; readonly secret: CryptoKey; readonly alg: string }>();

  constructor(issuer = 'https://idp.example.com') {
    this.issuer = issuer;
    this.documents.set(`${issuer}/.well-known/openid-configuration`, { issuer, jwks_uri: this.jwksUri });
  }

  /** An issuer with one key, `one`, for ES256. */
  static async open(issuer?: string): Promise<MemoryIssuer> {
    const opened = new MemoryIssuer(issuer);
    await opened.addKey('one');
    return opened;
  }

  get jwksUri(): string {
    return `${this.issuer}/keys`;
  }

  /** The keys as a gateway reads them. */
  keys(): IssuerKeys {
    const common = { clock: new FakeClock(), onFault: () => {} };
    const metadata = new IssuerDocument({ ...common, read: () => readMetadata(this.issuer, this.fetch) });
    return new IssuerKeys({ ...common, metadata, fetch: this.fetch });
  }

  /** The public key, as its document has it. */
  jwkOf(kid: string): JWK {
    return this.#keys.get(kid)?.jwk ?? {};
  }

  async addKey(kid: string, alg = 'ES256', members: Claims = {}): Promise<void> {
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
    this.#keys.set(kid, { jwk: { ...(await exportJWK(publicKey)), kid, alg, ...members }, secret: privateKey, alg });
  }

  /** Removes a key from the document. Tokens can still be signed with it. */
  withdraw(kid: string): void {
    this.#withdrawn.add(kid);
  }

  readonly fetch = async (url: string): Promise<Response> => {
    this.asked.push(url);
    await this.hold;
    if (this.isDown) throw new Error('the connection is refused');
    const published = [...this.#keys].flatMap(([kid, { jwk }]) => (this.#withdrawn.has(kid) ? [] : [jwk]));
    const document = url === this.jwksUri ? { keys: published } : this.documents.get(url);
    return document === undefined ? new Response('', { status: 404 }) : Response.json(document);
  };

  /** Signs the claims of an ordinary token, with others in their place. A claim that is `undefined` is left out. */
  async token(
    claims: Claims = {},
    { kid = 'one', header = {} }: { kid?: string; header?: Claims } = {},
  ): Promise<string> {
    const key = this.#keys.get(kid);
    if (key === undefined) throw new Error(`No key ${kid}`);
    const all = { iss: this.issuer, aud: AUDIENCE, sub: 'ann', iat: NOW_S, exp: NOW_S + 600, ...claims };
    const protectedHeader = { alg: key.alg, kid, typ: 'at+jwt', ...header };
    return await new SignJWT(all).setProtectedHeader(protectedHeader).sign(key.secret);
  }
}

/** A token of these parts, which need not fit. */
export function assembled(header: unknown, claims: unknown, signature = ''): string {
  return `${encoded(header)}.${encoded(claims)}.${signature}`;
}

export function encoded(value: unknown): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
}
