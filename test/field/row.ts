// The form of a row: what the other side does, and what a user should get.

import type { FrontClient } from './front.js';
import type { HttpPlay } from './http-play.js';
import type { FieldClient, Wire } from './legs.js';
import type { LoginPlay } from './login.js';
import type { Play } from './play.js';

/** Outcomes are texts that a person reads in the table. One that begins with this word is of no use to the user. */
export const FAILS = 'fails';

/** Outcome of a client that waits without an end. */
export const NO_ANSWER = `${FAILS}: no answer`;

/** A quirk of a server or a client that was seen in the field. */
export interface Row {
  /** What the other side does: a phrase for the table. */
  readonly quirk: string;
  /** What is right, in one sentence. */
  readonly right: string;
  /** The server on stdio. A row without server and URL has a sound one. */
  readonly server?: Play;
  /** Another server on stdio, which comes before this one in the configuration. Directly, the client has this one alone. */
  readonly before?: Play;
  /** The server behind a URL. */
  readonly http?: HttpPlay;
  /** The server behind a URL that wants a login. */
  readonly login?: LoginPlay;
  /** Settings of the server in the configuration of Trunkline. */
  readonly entry?: Readonly<Record<string, unknown>>;
  /** What the user of an official client does; by default lists the tools, and calls `echo`. Returns what the user gets. */
  readonly ask?: (client: FieldClient) => Promise<string>;
  /** In place of `ask`: a client that sends bytes of its own. Directly, it talks to a server of the official SDK. */
  readonly client?: (wire: Wire) => Promise<string>;
  /** In place of `ask`: a client over HTTP that sends requests of its own. Directly, it talks to a server of the official SDK. */
  readonly front?: (client: FrontClient) => Promise<string>;
  /** Capabilities of the official client; by default none. */
  readonly capabilities?: Readonly<Record<string, object>>;
  /** The generation of the official SDK whose client asks. */
  readonly sdk?: 1 | 2;
  /** Outcome with the official SDK directly. The default is what a sound server gives. */
  readonly direct?: string | RegExp;
  /** Outcome through Trunkline. The default is the outcome directly. */
  readonly through?: string | RegExp;
  /** Words in the status of the server. */
  readonly status?: RegExp;
  /** Reason for which the outcome through Trunkline may be less than directly: a protection of the user or of other servers. */
  readonly protects?: string;
}

/** What the default `ask` gets from a sound server. */
export const SOUND = 'tools: echo; echo: hello';

export type Verdict = 'same' | 'better' | 'safer' | 'worse';

/** Judges an outcome through Trunkline by the outcome directly. */
export function judge({
  direct,
  through,
  protects,
}: {
  direct: string;
  through: string;
  protects?: string | undefined;
}): Verdict {
  if (direct === through) return 'same';
  if (direct.startsWith(FAILS)) return 'better';
  return protects === undefined ? 'worse' : 'safer';
}
