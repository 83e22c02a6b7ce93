import { createHash } from 'node:crypto';
import { errors, type JWTPayload, jwtVerify } from 'jose';
import type { AuthConfig } from '../../config/file/check-file.js';
import { isRecord } from '../../wire/json/json-value.js';
import type { User } from '../port.js';
import { type IssuerKeys, KeysMissing } from './issuer-keys.js';

type JwtConfig = NonNullable<AuthConfig['jwt']>;

/** A token that is valid for a user. `expiresAt` is in milliseconds since 1970. */
interface ValidToken {
  readonly user: User;
  readonly expiresAt: number;
  readonly missing: readonly string[];
}

/** Thrown for a token that is not accepted. The message is a clause with *it* as the subject, without secrets. */
export class TokenRefused extends Error {
  override readonly name = 'TokenRefused';
}

/** Stands for every app in `clients`. */
const ANY_CLIENT = 'any';
const STANDARD_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'];
/** Difference between the clocks of this machine and of the issuer that is accepted, in seconds. */
export const CLOCK_TOLERANCE_S = 60;
/** Types of access tokens. Tokens for other purposes, such as the logout of a user, have types of their own. */
const TYPES = /^(?:application\/)?(?:at\+)?jwt$/i;
/** Limits of the groups of one user. */
const MAX_GROUPS = 1_000;
const MAX_CLAIM_LENGTH = 255;

/** Checks access tokens that are JWTs (RFC 9068 without the claims that common issuers leave out). */
export class JwtCheck {
  readonly #config: JwtConfig;
  readonly #keys: Pick<IssuerKeys, 'find'>;
  /** Milliseconds since 1970. */
  readonly #now: () => number;

  constructor(config: JwtConfig, keys: Pick<IssuerKeys, 'find'>, now: () => number) {
    this.#config = config;
    this.#keys = keys;
    this.#now = now;
  }

  /** Finds the user of a token. Rejects with `TokenRefused`, or with `KeysMissing` while no token can be checked. */
  async check(token: string): Promise<ValidToken> {
    const { issuer, audience, algorithms = STANDARD_ALGORITHMS, scopes = [] } = this.#config;
    const { payload, protectedHeader } = await jwtVerify(token, this.#keys.find, {
      issuer,
      audience: [...audience],
      algorithms: [...algorithms],
      clockTolerance: CLOCK_TOLERANCE_S,
      requiredClaims: ['exp', 'sub'],
      currentDate: new Date(this.#now()),
    }).catch((error: unknown) => {
      throw error instanceof KeysMissing ? error : new TokenRefused(reasonOf(error), { cause: error });
    });
    const { typ } = protectedHeader;
    if (typ !== undefined && !TYPES.test(typ)) throw new TokenRefused('its type is not that of an access token');
    // The sender would have to prove that it has the key of the token (RFC 9449, RFC 8705).
    if (payload.cnf !== undefined) throw new TokenRefused('it is bound to a key, which this gateway does not check');
    this.#refuseOtherApps(payload);
    const granted = scopesIn(payload);
    return {
      user: this.#userIn(payload),
      expiresAt: (payload.exp ?? 0) * 1_000,
      missing: scopes.filter((scope) => !granted.has(scope)),
    };
  }

  /** Other apps of the provider can get tokens for the same audience, also without a person, and an ID token is for its own app. */
  #refuseOtherApps(claims: JWTPayload): void {
    if (claims.nonce !== undefined || claims.at_hash !== undefined || claims.c_hash !== undefined)
      throw new TokenRefused('it is an ID token, and no access token');
    const { clients = [ANY_CLIENT] } = this.#config;
    if (clients.includes(ANY_CLIENT)) return;
    const app = claims.azp ?? claims.cid ?? claims.client_id ?? claims.appid;
    if (app === undefined) throw new TokenRefused('it does not say to which app it was issued');
    if (typeof app !== 'string' || !clients.includes(app))
      throw new TokenRefused(`it was issued to another app (${String(app)})`);
  }

  #userIn(claims: JWTPayload): User {
    const { issuer, userClaim = 'sub', groupsClaim = 'groups' } = this.#config;
    const name = claimAt(claims, userClaim);
    if (typeof name !== 'string' || !isName(name)) {
      throw new TokenRefused(`its claim ${userClaim} does not name a user`);
    }
    const groups = [claimAt(claims, groupsClaim) ?? []].flat();
    const names = groups.filter((group): group is string => typeof group === 'string').slice(0, MAX_GROUPS);
    return { principal: principalOf(issuer, name), name, kind: 'user', groups: names };
  }
}

/** Identifies a user among all issuers. Neither part contains the separator. */
export function principalOf(issuer: string, subject: string): string {
  return createHash('sha256').update(`${issuer}\0${subject}`).digest('hex');
}

/** Whether a claim can identify a user. Two texts that differ only in a lone surrogate would have the same hash. */
function isName(text: string): boolean {
  return text !== '' && text.length <= MAX_CLAIM_LENGTH && !/[\0\p{Cs}]/u.test(text);
}

/** The claim of this name, which may contain dots. Otherwise, dots lead into maps. */
function claimAt(claims: unknown, name: string): unknown {
  if (!isRecord(claims)) return undefined;
  if (Object.hasOwn(claims, name)) return claims[name];
  const dot = name.indexOf('.');
  const first = name.slice(0, Math.max(dot, 0));
  return Object.hasOwn(claims, first) ? claimAt(claims[first], name.slice(dot + 1)) : undefined;
}

/** The scopes of a token. Issuers disagree on the name of the claim and on its form. */
function scopesIn({ scope, scp }: JWTPayload): ReadonlySet<unknown> {
  return new Set([scope, scp].flat().flatMap((claim) => (typeof claim === 'string' ? claim.split(' ') : [])));
}

const REASONS: Readonly<Record<string, string>> = {
  [errors.JWTExpired.code]: 'it has expired',
  [errors.JOSEAlgNotAllowed.code]: 'its algorithm is not accepted',
  [errors.JWKSNoMatchingKey.code]: 'the issuer has no such key',
  [errors.JWKSMultipleMatchingKeys.code]: 'it does not say which key of the issuer has signed it',
  [errors.JWSSignatureVerificationFailed.code]: 'its signature is wrong',
};

const WRONG_CLAIMS: Readonly<Record<string, (claims: JWTPayload) => string>> = {
  nbf: () => 'it is not valid yet',
  iss: () => 'it is from another issuer',
  aud: ({ aud }) => `it is for another audience (${[aud].flat().join(', ')})`,
};

/** The reason for which `jose` refuses a token. The signature is checked before the claims. */
function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTClaimValidationFailed) {
    const { claim, reason, payload } = error;
    if (reason === 'missing') return `it has no claim ${claim}`;
    const wrong = reason === 'check_failed' ? WRONG_CLAIMS[claim]?.(payload) : undefined;
    return wrong ?? `its claim ${claim} is not valid`;
  }
  const code = error instanceof errors.JOSEError ? error.code : '';
  return REASONS[code] ?? 'it is no JWT that can be checked';
}
