import type { RouteAnswer } from '../downstream/http/http-route.js';

/** The cookies of this gateway in browsers. `__Host-` keeps other hosts of the domain from setting them. */
export class Cookies {
  readonly #isSecure: boolean;

  constructor(publicUrl: string) {
    this.#isSecure = publicUrl.startsWith('https:');
  }

  /** The header that sets a cookie for `ms`. No script reads it, and no form of another site sends it. */
  set(name: string, value: string, ms: number): string {
    const secure = this.#isSecure ? '; Secure' : '';
    return `${this.#nameOf(name)}=${value}; Path=/; Max-Age=${Math.floor(ms / 1_000)}; HttpOnly; SameSite=Lax${secure}`;
  }

  /** The header that removes a cookie. */
  remove(name: string): string {
    return this.set(name, '', 0);
  }

  /** The value of a cookie in the header of a browser; empty without it. */
  read(header: string | undefined, name: string): string {
    const pairs = (header ?? '').split(/; */).map((pair) => pair.split(/=(.*)/s));
    return pairs.find(([each]) => each === this.#nameOf(name))?.[1] ?? '';
  }

  /**
   * The headers that remove the cookies `PREFIX-ID` but for the latest ones, the last of the header. With many, requests would have too
   * large headers.
   */
  outdated(header: string | undefined, prefix: string, kept: number): readonly string[] {
    const all = [...(header ?? '').matchAll(/(?:^|; *)(?:__Host-)?trunkline-([\w-]+-[\w-]{22})=/g)];
    const own = all.flatMap(([, name = '']) => (name.slice(0, -23) === prefix ? [name] : []));
    return own.slice(0, Math.max(0, own.length - kept)).map((name) => this.remove(name));
  }

  #nameOf(name: string): string {
    return `${this.#isSecure ? '__Host-' : ''}trunkline-${name}`;
  }
}

export function withCookies(answer: RouteAnswer, cookies: readonly string[]): RouteAnswer {
  return { ...answer, headers: { ...answer.headers, 'set-cookie': cookies } };
}
