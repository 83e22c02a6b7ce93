import type { CallDetail, CallRow, CallsEvent, HubDescription, OutputLine } from '../../hub/control.js';
import type { StatusReport } from '../../status/status.js';
import type { ToolAdvice } from '../../status/tool-advice.js';
import type { ViewTools } from '../../status/tool-report.js';
import type { HistoryReport } from '../../status/usage-history.js';

export type { CallDetail, CallRow, CallsEvent } from '../../hub/control.js';
export type { ToolRow, ViewTools } from '../../status/tool-report.js';

/*
 * Messages between `trunkline web` and its page. Both come from one build, so they have one version.
 *
 * `POST /session` with the JSON object `{ code }` answers with a key as text, and sets a cookie. Every other request, except
 * those for the files of the page, needs the cookie and the key in the header `X-Trunkline-Key`. `POST /session` with `{}` makes
 * the command print a new URL. `DELETE /session` ends the session.
 *
 * A request that fails is answered with a status from 400 on and `{ error }`, a sentence for the user. 401 means that there is no
 * session any more.
 */

interface Request<Values, Answer> {
  readonly values: Readonly<Values>;
  readonly answer: Answer;
}

/**
 * Requests of the page. A `GET` has its values in the query. A `POST` changes something, has its values in a JSON object, and is
 * refused with 403 under `--read-only`. The answer is JSON.
 */
export interface Requests {
  /** A call with its messages; null if the hub does not keep them. It keeps those of the latest calls, while a page is open. */
  readonly 'GET /call': Request<{ id: string }, CallDetail | null>;
  /** The latest calls of the configuration in the call log, the oldest first. */
  readonly 'GET /past': Request<object, readonly CallRow[]>;
  readonly 'GET /output': Request<{ server: string }, readonly OutputLine[]>;
  readonly 'GET /settings': Request<{ server: string }, readonly SettingRow[]>;
  /** Tools that each view shows and hides, and `tools.deny` and `tools.allow` of each server that has one of them. */
  readonly 'GET /tools': Request<
    object,
    { readonly views: readonly AdvisedView[]; readonly lists: readonly ToolLists[] }
  >;
  /** The definition of a tool that the view shows, as its clients get it. */
  readonly 'GET /definition': Request<{ name: string; view: string }, string>;
  readonly 'GET /review': Request<{ server: string }, readonly ReviewRow[]>;
  readonly 'GET /logins': Request<object, readonly LoginRow[]>;
  /** Runs the checks of `trunkline doctor --no-start`. */
  readonly 'GET /findings': Request<object, readonly FindingRow[]>;
  readonly 'POST /restart': Request<{ server: string }, object>;
  /** Answers the question about a call that waits for a person. 409 if it does not wait any more. */
  readonly 'POST /answer': Request<{ id: string; allow: boolean }, object>;
  /** Answers with the changes of the file. Writes them if `hash` is that of such an answer; 409 if the file has changed since. */
  readonly 'POST /configure': Request<{ changes: readonly ConfigChange[]; hash?: string }, ConfigDiff>;
  /** Undoes the last write, whose answer had this `undo`; 409 if the file has changed since. */
  readonly 'POST /undo': Request<{ undo: string }, { readonly file: string }>;
  /** 409 if the tool has another hash by now. */
  readonly 'POST /approve': Request<{ server: string; tool: string; hash: string }, object>;
  /** Begins a login. `url` is the page of the authorization server; null if none is needed. `text` says what to do. */
  readonly 'POST /login': Request<{ server: string }, { readonly url: string | null; readonly text: string }>;
  readonly 'POST /logout': Request<{ server: string }, { readonly text: string }>;
  readonly 'POST /record': Request<object, RecordingState>;
  readonly 'POST /record/stop': Request<object, RecordingState>;
}
/* Besides, `GET /recording?file=NAME` answers with a recording that was made from the page. */

/** Disables or enables a server, or replaces its `tools.deny` and `tools.allow`. */
export interface ConfigChange {
  readonly server: string;
  readonly isDisabled?: boolean;
  readonly deny?: readonly string[];
  readonly allow?: readonly string[];
}

/**
 * `GET /stream` is answered with Server-Sent Events, whose `data` is a frame. At most ten frames a second. There is no resumption,
 * because each stream begins with the whole state.
 */
export type Frame =
  /**
   * First frame, sent again when another configuration is shown. Frames before it do not belong to this configuration. The file is
   * null if there is none.
   */
  | { readonly kind: 'hello'; readonly isReadOnly: boolean; readonly configFile: string | null }
  /** The whole state: soon after `hello`, then when it has changed, at most once a second. */
  | { readonly kind: 'state'; readonly at: number; readonly hub: HubState; readonly needs: readonly Need[] }
  /** Calls since the frame before, 200 at most. The first frame of a stream and of a hub has `since`: no call is missing from then on. */
  | ({ readonly kind: 'calls' } & CallsEvent)
  /** Usage of the servers in the last hour. Sent first, every ten seconds, and every two seconds while calls begin or end. */
  | ({ readonly kind: 'history' } & HistoryReport)
  | { readonly kind: 'recording'; readonly recording: RecordingState | null };

export type HubState =
  /** `disabled` are the servers of the configuration that the report leaves out. */
  | {
      readonly kind: 'running';
      readonly hub: HubDescription;
      readonly report: StatusReport;
      readonly disabled: readonly string[];
    }
  /** The hub waits for its first client, so no server was started. */
  | { readonly kind: 'waiting'; readonly hub: HubDescription }
  /**
   * No hub runs. `because` is a sentence about its end, `remedy` one about the start of the next, `fault` one about a wrong configuration.
   */
  | {
      readonly kind: 'none';
      readonly because: string;
      readonly remedy: string;
      readonly servers: readonly ConfiguredServer[];
      readonly fault: string | null;
    };

export interface ConfiguredServer {
  readonly server: string;
  /** Command line or URL. */
  readonly runs: string;
  readonly isDisabled: boolean;
}

/** One thing that a person should do. In a list, the most urgent is first. */
export interface Need {
  /** Stable while the need lasts. */
  readonly id: string;
  readonly level: 'fail' | 'warn';
  /** Code of `docs/errors.md`, if it has one. */
  readonly code: string | null;
  readonly server: string | null;
  readonly title: string;
  /** Meaning; '' if the title has it. */
  readonly detail: string;
  readonly cause: readonly string[];
  /** A command to copy; null if no command helps. */
  readonly command: string | null;
  readonly action: 'restart' | 'login' | 'review' | null;
  /** The id of the question about a call, which the page answers; null for every other need. */
  readonly question: string | null;
}

/** A setting in force, its source, and the line in the file; null for a built-in value. */
export interface SettingRow {
  readonly name: string;
  readonly value: string;
  readonly from: 'server' | 'defaults' | 'built in';
  readonly line: number | null;
}

/** A view, with the lines of YAML that would make its list smaller. */
export interface AdvisedView extends ViewTools {
  readonly advice: readonly ToolAdvice[];
}

export interface ToolLists {
  readonly server: string;
  readonly deny: readonly string[];
  readonly allow: readonly string[];
}

/** A tool that waits for approval. `hash` names the definition that `lines` show. */
export interface ReviewRow {
  readonly tool: string;
  readonly change: 'new' | 'changed';
  readonly hash: string;
  readonly lines: readonly DiffLine[];
}

export interface LoginRow {
  readonly server: string;
  readonly state: string;
  readonly issuer: string | null;
  readonly scopes: readonly string[];
  /** ISO date. */
  readonly expiresAt: string | null;
  readonly note: string;
}

export interface FindingRow {
  readonly level: 'ok' | 'warn' | 'fail';
  readonly code: string;
  readonly sentence: string;
  readonly evidence: readonly string[];
  readonly remedy: string;
}

export interface RecordingState {
  readonly file: string;
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly written: number;
  readonly dropped: number;
  readonly fault: string | null;
}

/** Changes of the configuration file. `hash` identifies the text of the file before them. */
export interface ConfigDiff {
  readonly file: string;
  readonly hash: string;
  /** Value for `POST /undo`; null if the changes were not written. */
  readonly undo: string | null;
  readonly lines: readonly DiffLine[];
}

export interface DiffLine {
  readonly sign: ' ' | '-' | '+';
  readonly text: string;
}
