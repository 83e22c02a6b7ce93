import type { CatalogueContent } from '../catalog/cached-catalogue.js';
import type { ExposureRules } from '../catalog/exposed-list.js';
import type { OfferedListsOptions } from '../catalog/offered-lists.js';
import type { DispatcherOptions } from '../dispatch/dispatcher.js';
import type { FirstStartOptions } from './first-start.js';

/** Rules of the configuration for one server. They may change while its process runs. */
export interface BackendRules
  extends Pick<ExposureRules, 'policy' | 'approvals' | 'shaping'>,
    Pick<DispatcherOptions, 'limits'> {
  readonly prefix: string;
  /** Whether the configuration says that this server answers a method which MCP does not define. */
  readonly answers?: (method: string) => boolean;
  /** Whether the configuration trusts the annotations of this server's tools (`readOnlyHint`, `idempotentHint`). */
  readonly isTrusted?: boolean;
  /** Milliseconds without a call after which the process is stopped. 0 means never. */
  readonly idleStopMs?: number;
}

/** Whether something depends on what the tool list of the server says. */
export function needsLists({ approvals, isTrusted, shaping }: BackendRules): boolean {
  return approvals !== undefined || isTrusted === true || shaping !== undefined;
}

export interface BackendOptions
  extends ExposureRules,
    DispatcherOptions,
    BackendRules,
    Pick<OfferedListsOptions, 'workTime'>,
    Pick<FirstStartOptions, 'onStartMissed'> {
  /** Unique among the instances of all servers. The first instance of a server has the server's key. */
  readonly id: string;
  readonly prefix: string;
  /** Whether the configuration of this server is wrong, so that it can never run. */
  readonly isMisconfigured: boolean;
  /** Requests a start of the process, ahead of starts that no call waits for. */
  readonly demandStart: () => void;
  /** Requests a stop of the idle process. The next call requests a start again. */
  readonly idleStop?: () => void;
  /** Called with the server's lists each time they were read from the process. */
  readonly onListsRead?: (content: CatalogueContent) => void;
}
