/*
 * What a command of a person and a hub say to each other, after a hello with the role `control`: lines of JSON.
 */

/** A command for the hub. */
export interface ControlRequest {
  readonly id: number;
  readonly command: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** Some commands have events before their result; one that goes on until the connection is closed has no result. */
export type ControlReply =
  | { readonly id: number; readonly event: unknown }
  | { readonly id: number; readonly result: unknown }
  /** A sentence for the person. */
  | { readonly id: number; readonly error: string };
