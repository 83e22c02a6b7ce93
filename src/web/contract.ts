import type { StatusReport } from '../gateway/status/status.js';
import type { ViewTools } from '../gateway/status/tool-report.js';
import type { CallDetail, CallsEvent, Failures, HubDescription, OutputLine, UsagePoint } from '../hub/control.js';

export type { ToolRow, ViewTools } from '../gateway/status/tool-report.js';
export type { CallDetail, CallRow, CallsEvent, Failures, OutputLine, UsagePoint } from '../hub/control.js';

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

/** Requests that change nothing: `GET` with a query. Their answer is JSON. */
export interface Reads {
  /** A call, and its messages if the hub keeps them: those of the latest calls that a page followed, while a page is open. */
  readonly '/call': { readonly query: { readonly id: string }; readonly answer: CallDetail };
  readonly '/failures': { readonly query: { readonly server: string }; readonly answer: Failures };
  readonly '/server': { readonly query: { readonly server: string }; readonly answer: ServerDetail };
  /** Tools that each view shows and hides, and `tools.deny` and `tools.allow` of each server that has one of them. */
  readonly '/tools': {
    readonly query: object;
    readonly answer: { readonly views: readonly ViewTools[]; readonly lists: readonly ToolLists[] };
  };
  /** The definition of a tool that the view shows, as its clients get it. */
  readonly '/definition': {
    readonly query: { readonly name: string; readonly view: string };
    readonly answer: { readonly text: string };
  };
  /** Tools of a server that wait for approval. */
  readonly '/review': { readonly query: { readonly server: string }; readonly answer: ReviewAnswer };
  readonly '/logins': { readonly query: object; readonly answer: { readonly logins: readonly LoginRow[] } };
  /** Runs the checks of `trunkline doctor --no-start`. */
  readonly '/findings': { readonly query: object; readonly answer: { readonly findings: readonly FindingRow[] } };
}
/* Besides, `GET /recording?file=NAME` answers with a recording that was made from the page. */

/** Requests that change something: `POST` with a JSON object. Refused with 403 under `--read-only`. */
export interface Actions {
  readonly '/restart': { readonly body: { readonly server: string }; readonly answer: object };
  /** Answers with the changes of the configuration. Writes them if `hash` is the one of that answer; 409 if the file changed. */
  readonly '/enable': {
    readonly body: { readonly server: string; readonly isEnabled: boolean; readonly hash?: string };
    readonly answer: ConfigDiff;
  };
  /** Replaces `tools.deny` or `tools.allow` of a server, in the same two steps. `null` removes `allow`. */
  readonly '/tools': {
    readonly body: {
      readonly server: string;
      readonly deny?: readonly string[];
      readonly allow?: readonly string[] | null;
      readonly hash?: string;
    };
    readonly answer: ConfigDiff;
  };
  /** 409 if the tool has another hash by now. */
  readonly '/approve': {
    readonly body: { readonly server: string; readonly tool: string; readonly hash: string };
    readonly answer: object;
  };
  /** Begins a login. `url` is the page of the authorization server; null if none is needed. `text` says what to do. */
  readonly '/login': {
    readonly body: { readonly server: string };
    readonly answer: { readonly url: string | null; readonly text: string };
  };
  readonly '/logout': { readonly body: { readonly server: string }; readonly answer: { readonly text: string } };
  readonly '/record': { readonly body: object; readonly answer: RecordingState };
  readonly '/record/stop': { readonly body: object; readonly answer: RecordingState };
}

/**
 * `GET /stream` is answered with Server-Sent Events, whose `data` is a frame. With `calls=1` calls are sent, with `output=KEY`
 * the output of a server; a page that shows something else opens another stream. At most ten frames a second. `id` is the number
 * of the frame in its stream. There is no resumption, because each stream begins with the whole state.
 */
export type Frame =
  /** First frame: facts that do not change while `trunkline web` runs. */
  | {
      readonly kind: 'hello';
      readonly version: string;
      readonly configFile: string;
      readonly isReadOnly: boolean;
      /** The home folder, to shorten paths. */
      readonly home: string;
    }
  /** The whole state: soon after `hello`, then when it has changed, at most once a second. */
  | { readonly kind: 'state'; readonly at: number; readonly hub: HubState; readonly needs: readonly Need[] }
  /** Use and rates of the last interval. Only while a hub runs, at most every 5 s. */
  | { readonly kind: 'usage'; readonly at: number; readonly servers: readonly UsagePoint[] }
  /** Calls since the frame before, 200 at most. `left` counts the others by outcome. */
  | ({ readonly kind: 'calls' } & CallsEvent)
  /** Lines of a server's output, 200 at most. With `isFirst`, they replace those before. `left` counts the missing lines. */
  | {
      readonly kind: 'output';
      readonly server: string;
      readonly lines: readonly OutputLine[];
      readonly isFirst: boolean;
      readonly left: number;
    }
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
   * No hub runs. `because` is a sentence about its end, `remedy` one about the start of the next, `fault` one about a wrong
   * configuration.
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
  readonly runs: string;
  readonly isDisabled: boolean;
}

/** One thing that a person should do, most urgent first. */
export interface Need {
  /** Stable while the need lasts. */
  readonly id: string;
  readonly level: 'fail' | 'warn';
  /** Code of `docs/errors.md`, if it has one. */
  readonly code: string | null;
  readonly server: string | null;
  /** One sentence: what happened. */
  readonly title: string;
  /** Meaning; '' if the title has it. */
  readonly detail: string;
  /** Lines of output that show the cause. */
  readonly cause: readonly string[];
  /** A command to copy; null if none does it. */
  readonly command: string | null;
  readonly action: {
    readonly kind: 'restart' | 'enable' | 'login' | 'review' | 'doctor';
    readonly server: string;
  } | null;
}

export interface ServerDetail {
  readonly report: StatusReport['servers'][number];
  /** Settings in force, and where each comes from, such as `server`, `defaults` or `built in`, with the line in the file. */
  readonly settings: readonly {
    readonly name: string;
    readonly value: string;
    readonly from: string;
    readonly line: number | null;
  }[];
}

export interface ToolLists {
  readonly server: string;
  readonly deny: readonly string[];
  readonly allow: readonly string[];
}

export interface ReviewAnswer {
  readonly server: string;
  readonly tools: readonly {
    readonly tool: string;
    readonly change: 'new' | 'changed';
    readonly hash: string;
    readonly lines: readonly DiffLine[];
  }[];
}

export interface LoginRow {
  readonly server: string;
  readonly state: string;
  readonly issuer: string | null;
  readonly scopes: readonly string[];
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
  readonly since: number;
  readonly written: number;
  readonly dropped: number;
  readonly fault: string | null;
}

/** Changes of the configuration file, which `hash` names. */
export interface ConfigDiff {
  readonly file: string;
  readonly hash: string;
  readonly lines: readonly DiffLine[];
  readonly isWritten: boolean;
}

export interface DiffLine {
  readonly sign: ' ' | '-' | '+';
  readonly text: string;
}
