import { once } from 'node:events';
import { createServer } from 'node:http';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';

const ALG = 'ES256';
const AUDIENCE = 'urn:cluster';
/** Tokens are older than the clocks of a run differ, and last longer than a run. */
const [AGE_S, LASTS_S] = [3_600, 7_200];

/** An identity provider for users of a run, whose gateways ask it for its key. */
export class Issuer {
  static async open() {
    const issuer = new Issuer();
    const { publicKey, privateKey } = await generateKeyPair(ALG);
    issuer.#secret = privateKey;
    const keys = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'one', alg: ALG }] });
    issuer.#server = createServer((_, response) => response.setHeader('content-type', 'application/json').end(keys));
    issuer.#server.listen(0, '127.0.0.1');
    await once(issuer.#server, 'listening');
    issuer.#url = `http://127.0.0.1:${issuer.#server.address().port}`;
    return issuer;
  }

  #secret;
  #server;
  #url;

  /** `auth.jwt` of a configuration. */
  get settings() {
    return { issuer: this.#url, audience: [AUDIENCE], jwksUri: `${this.#url}/keys` };
  }

  /** `lastsSeconds` is negative for a token that has expired. */
  async token(user, { groups, lastsSeconds = LASTS_S } = {}) {
    const now = Math.floor(Date.now() / 1_000);
    const claims = { iss: this.#url, aud: AUDIENCE, sub: user, groups, iat: now - AGE_S, exp: now + lastsSeconds };
    return await new SignJWT(claims).setProtectedHeader({ alg: ALG, kid: 'one', typ: 'at+jwt' }).sign(this.#secret);
  }

  close() {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
